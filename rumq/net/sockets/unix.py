"""Unix sockets to listen on: path, permissions, and removal of the socket of a broker that was killed. unix(7)"""

from __future__ import annotations

import errno
import os
import socket
import stat

from rumq.unix_address import Address


def open_unix_socket(path: str, mode: int, backlog: int) -> socket.socket:
    """Listen at `path`, whose file has the permissions `mode` from its first moment on.

    A socket there that nobody listens at any more is replaced; anything else stays. raises: OSError in words"""
    remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o777 & ~mode)
    try:
        with Address(path) as address:
            sock.bind(address)
    except OSError:
        sock.close()
        raise
    finally:
        os.umask(before)
    sock.listen(backlog)
    sock.setblocking(False)
    return sock


def remove_stale(path: str) -> None:
    """Remove a socket that nobody listens at. raises: OSError if somebody does, or it is no socket"""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError(errno.EEXIST, "there is a file already, and it is no socket", path)
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.setblocking(False)
    try:
        with Address(path) as address:
            probe.connect(address)
    except (ConnectionRefusedError, FileNotFoundError):
        remove(path)
    except BlockingIOError:
        raise OSError(errno.EADDRINUSE, "another process listens here", path) from None  # its backlog is full
    else:
        raise OSError(errno.EADDRINUSE, "another process listens here", path)
    finally:
        probe.close()


def remove(path: str) -> None:
    """At the end: the file of a socket that is closed."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
