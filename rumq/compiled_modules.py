"""Compiled modules and their sources: Python imports a compiled module without a look at the source beside it.

setup.py, which runs this file too, gives each the digest of its source as ELF build id. So an edit that was not
compiled is seen whatever the times of the files are, in a clone and in an installation."""

from __future__ import annotations

import hashlib
import struct
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

FLOORS = ("commitlog", "router", "rumq")
SUFFIX = EXTENSION_SUFFIXES[0]
OURS = b"rumq"  # a build id that the linker makes by itself begins otherwise
DIGEST_BYTES = 10  # of each of the two files
NOTE = struct.pack("=III4s", 4, len(OURS) + 2 * DIGEST_BYTES, 3, b"GNU\0") + OURS  # ELF, NT_GNU_BUILD_ID
NOTE_BEFORE = 4096  # bytes of the file: linkers put it behind the headers


def build_id(source: Path) -> bytes:
    """What a module that is made of `source` has: digests of the file and of its .pxd, zeros where there is none."""
    return OURS + digest(source) + digest(source.with_suffix(".pxd"))


def digest(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()[:DIGEST_BYTES]
    except FileNotFoundError:
        return bytes(DIGEST_BYTES)


def maybe_build_id(module: Path) -> bytes | None:
    """That of a compiled module; None: it was not made by this setup.py."""
    with open(module, "rb") as file:
        head = file.read(NOTE_BEFORE)
    at = head.find(NOTE)
    return OURS + head[at + len(NOTE) :][: 2 * DIGEST_BYTES] if at >= 0 else None


def is_stale(module: Path, source: Path) -> bool:
    """Whether a compiled module is of another source than the one beside it. A wheel has no .pxd to compare with.

    raises: OSError"""
    found, wanted = maybe_build_id(module), build_id(source)
    if found is None or not source.exists():
        return False
    compared = len(wanted) if source.with_suffix(".pxd").exists() else len(wanted) - DIGEST_BYTES
    return found[:compared] != wanted[:compared]


def stale_modules(root: Path = Path(__file__).parents[1]) -> list[str]:
    """Names of those that Python imports although their source was edited since. Cost: 10 ms, to read 100 sources."""
    return sorted(
        ".".join(source.relative_to(root).with_suffix("").parts)
        for module, source in compiled_under(root)
        if is_stale(module, source)
    )


def compiled_under(root: Path) -> Iterator[tuple[Path, Path]]:
    """Each compiled module of this Python, and where its source is or was."""
    for floor in FLOORS:
        for module in (root / floor).rglob(f"*{SUFFIX}"):
            yield module, module.with_name(module.name.removesuffix(SUFFIX) + ".py")


def repair(root: Path = Path(__file__).parents[1]) -> str:
    """The command that compiles them again."""
    if (root / "setup.py").exists():
        return f"cd {root} && {sys.executable} setup.py build_ext --inplace"
    return f"{sys.executable} -m pip install --force-reinstall --no-cache-dir rumq"
