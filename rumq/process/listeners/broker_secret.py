"""A random secret in the data directory, shared by all shards and kept over restarts.

Decoy hashes and salts of unknown users are derived from it: if they changed between shards or restarts, unknown users
could be distinguished from real ones. It grants no access, and backups omit it."""

from __future__ import annotations

import hashlib
import secrets

from rumq.auth.credentials import files

NAME, SECRET_BYTES = "SECRET", 32
ID_DIGITS = 16


def make_secret(data: str) -> None:
    """Create the secret unless there is one; the caller holds the data directory. raises: OSError"""
    if maybe_secret(data) is None:
        files.replace(f"{data}/{NAME}", secrets.token_hex(SECRET_BYTES) + "\n")


def maybe_secret(data: str) -> bytes | None:
    """None if there is no valid one."""
    try:
        with open(f"{data}/{NAME}", encoding="ascii") as file:
            found = bytes.fromhex(file.read(4 * SECRET_BYTES))
    except (OSError, ValueError):
        return None
    return found if len(found) == SECRET_BYTES else None


def broker_id(data: str, cluster: str) -> str:
    """Which broker this is, for bridges: of its secret, which it does not tell, or of the cluster's name."""
    of = cluster.encode() if cluster else maybe_secret(data)
    return hashlib.sha256(b"broker id\0" + of).hexdigest()[:ID_DIGITS] if of else ""
