"""How many processes kept records of their own in a data directory, and in which generation: the file SHARDS.

    <number of processes> <generation>

Without it there was one, in generation 1. docs/reference/log-format.md, "The log on disk". Knows no record."""

from __future__ import annotations

from typing import NamedTuple

from commitlog.disk.files import Files, replace_file, whole_file
from commitlog.errors import StoreError

NAME = "SHARDS"


class ShardCount(NamedTuple):
    shards: int
    generation: int


def read_shard_count(files: Files, root: str) -> ShardCount:
    """raises: OSError, StoreError"""
    path = f"{root}/{NAME}"
    if not files.exists(path):
        return ShardCount(1, 1)
    said = whole_file(files, path)[:64].decode(errors="replace").split()
    if len(said) != 2 or not all(word.isdigit() and int(word) for word in said):
        raise StoreError(root, f"its file {NAME} says {' '.join(said)!r}: restore it from a backup")
    return ShardCount(int(said[0]), int(said[1]))


def write_shard_count(files: Files, root: str, roster: ShardCount) -> None:
    """Durable when it returns. raises: OSError"""
    replace_file(files, f"{root}/{NAME}", f"{roster.shards} {roster.generation}\n".encode())
