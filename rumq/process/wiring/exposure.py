"""Data directories that other users of this machine can read, and with it every message.

rumq creates files for their owner only; directories of older versions, of `cp` or of a restore by hand may be open.
Knows modes only, no access control lists and no record."""

from __future__ import annotations

import os
import stat

ENTER, READ, WRITE = stat.S_IXOTH, stat.S_IROTH, stat.S_IWOTH


def exposed(directory: str) -> str:
    """A file that everybody on this machine can read or change, and the remedy; empty if there is none.

    A file counts if others can enter all directories above it. Cost: one stat for each file there"""
    found = open_path(directory)
    if not found:
        return ""
    return f"everybody on this machine can {found}: chmod -R o= {directory}"


def open_path(directory: str) -> str:
    try:
        mode = os.stat(directory).st_mode
        if mode & WRITE and not mode & stat.S_ISVTX:
            return f"add and remove files in {directory}"
        if not mode & ENTER:
            return ""
        with os.scandir(directory) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if entry.is_dir(follow_symlinks=False):
                    if found := open_path(entry.path):
                        return found
                elif holds_messages(entry.name):
                    mode = entry.stat().st_mode
                    if mode & (READ | WRITE):
                        return f"{'change' if mode & WRITE else 'read'} {entry.path}"
    except OSError:
        pass  # removed meanwhile, or not readable: opening it reports the error
    return ""


def holds_messages(name: str) -> bool:
    return name.endswith((".seg", ".idx", ".snap"))
