"""Messages for operating system errors, with cause and remedy.

At a start, which is refused; and in a running broker, which retries by itself until the cause is removed."""

from __future__ import annotations

import errno

FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EACCES, errno.EPERM)


def at_start(fault: OSError) -> str:
    """Why a data directory cannot be used."""
    if fault.errno == errno.EROFS:
        return "the file system is read-only: remount it, or give another --data"
    if fault.errno in FULL:
        return "the file system is full: make room, or give another --data"
    if fault.errno in FORBIDDEN:
        return "this user may not write there: change the owner, or give another --data"
    if fault.errno in (errno.ENOTDIR, errno.EEXIST):
        return "it is a file, not a directory: give another --data"
    if fault.errno == errno.ENOENT:
        return "a part of it vanished while it was opened: see who removes files there, or give another --data"
    return f"{fault.strerror or fault}: give another --data, or repair this one"


def while_running(fault: OSError) -> str:
    """The cause of a failed write, and the remedy. The broker retries by itself."""
    if fault.errno == errno.EROFS:
        return "the file system is read-only now, often after errors of its device: see the kernel's log, then remount"
    if fault.errno in FULL:
        return "the file system is full: make room (fewer records kept, other files elsewhere)"
    if fault.errno in FORBIDDEN:
        return "this user may not write there any more: give the directory its owner and rights back"
    if fault.errno in (errno.ENOENT, errno.ENOTDIR):
        return (
            "the directory has vanished: mount or move it back; what it held is lost if it was removed, "
            "then stop the broker and start it again"
        )
    if fault.errno == errno.EIO:
        return "the device fails: look at the kernel's log, and move the data directory to another device"
    return fault.strerror or str(fault)
