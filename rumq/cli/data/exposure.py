"""Who else on this machine can read a data directory: whoever can, reads every message in it.

What rumq makes is its owner's alone. A directory that an older version made, a restore by hand or `cp` may be open.
Knows modes only, no access control lists and no record."""

from __future__ import annotations

import os
import stat

ENTER, READ, WRITE = stat.S_IXOTH, stat.S_IROTH, stat.S_IWOTH


def exposed(directory: str) -> str:
    """What everybody on this machine can read or change there, and the way out; empty where it is closed.

    A file counts if all directories down to it let others in. Cost: a look at each file of those; none otherwise"""
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
        pass  # gone meanwhile, or not ours to look into: whoever opens it says so
    return ""


def holds_messages(name: str) -> bool:
    return name.endswith((".seg", ".idx", ".snap"))
