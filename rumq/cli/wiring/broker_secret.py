"""A secret of the broker's own, kept in the data directory: the same for all its shards and over restarts.

What is made up for users that do not exist is derived from it: were it another one after a restart, or in another
shard, those users could be told from real ones. It opens nothing, and a backup goes without it."""

from __future__ import annotations

import secrets

from rumq.auth import files

NAME, SECRET_BYTES = "SECRET", 32


def make_secret(data: str) -> None:
    """Make the secret of a data directory that is ours, unless it has one. raises: OSError"""
    if maybe_secret(data) is None:
        files.replace(f"{data}/{NAME}", secrets.token_hex(SECRET_BYTES) + "\n")


def maybe_secret(data: str) -> bytes | None:
    """None where there is none that can be used."""
    try:
        with open(f"{data}/{NAME}", encoding="ascii") as file:
            found = bytes.fromhex(file.read(4 * SECRET_BYTES))
    except (OSError, ValueError):
        return None
    return found if len(found) == SECRET_BYTES else None
