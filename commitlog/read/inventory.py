"""The expected partitions of a data directory: the file PARTITIONS, one line each, such as main/g1/p0.

It detects removed partitions. Written when all are open; an older directory has no such file, so that only the
partition that every broker creates is expected. docs/reference/log-format.md, "The log on disk". Knows no record."""

from __future__ import annotations

from commitlog.disk.files import Files, replace_file, whole_file
from commitlog.disk.shard_count import read_shard_count
from commitlog.errors import StoreError
from commitlog.format.manifest import NAME as MANIFEST

NAME = "PARTITIONS"


def write_inventory(files: Files, root: str, names: list[str]) -> None:
    """Durable when it returns. raises: OSError"""
    content = "".join(f"{name}\n" for name in sorted(names)).encode()
    path = f"{root}/{NAME}"
    if not files.exists(path) or whole_file(files, path) != content:
        replace_file(files, path, content)


def missing_partitions(files: Files, root: str, internal: str) -> list[str]:
    """Expected partitions that do not exist. internal: the stream that every broker creates. raises: OSError"""
    path = f"{root}/{NAME}"
    if files.exists(path):
        names = whole_file(files, path).decode(errors="replace").split()
    else:
        names = expected(files, root, internal)
    return [name for name in names if not files.exists(f"{root}/{name}/{MANIFEST}")]


def expected(files: Files, root: str, internal: str) -> list[str]:
    """Of a directory without an inventory."""
    if not any(files.exists(f"{root}/{name}/g1/p0/{MANIFEST}") for name in files.names(root) if name != internal):
        return []  # nothing was ever written here
    try:
        roster = read_shard_count(files, root)
    except StoreError:
        return []  # who opens it says so
    return [f"{internal}/g{roster.generation}/p{number}" for number in range(roster.shards)]
