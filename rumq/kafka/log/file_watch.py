"""Tells when files of directories are written: Linux's inotify. inotify(7)

A write is known at once and costs nothing while there is none; without inotify (its limits are the user's) whoever
waits looks again after a while."""

from __future__ import annotations

import ctypes
import os
import struct

MODIFIED, CREATED, MOVED_TO, DELETED = 0x002, 0x100, 0x080, 0x200
NONBLOCK, CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC
EVENT = struct.Struct("iIII")
OVERFLOW = -1  # in place of a watch: events were lost
READ_BYTES = 1 << 16


class FileWatch:
    """descriptor: readable when something has changed; -1: there is no inotify here"""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = self._libc.inotify_init1(NONBLOCK | CLOEXEC)
        self._watched: dict[str, int] = {}
        self._names: dict[int, str] = {}

    def watch(self, directory: str, name: str) -> bool:
        """Watch a directory from now on; whether that is possible. name: by which `changed` tells of it"""
        if self.descriptor < 0:
            return False
        if directory not in self._watched:
            found = self._libc.inotify_add_watch(
                self.descriptor, os.fsencode(directory), MODIFIED | CREATED | MOVED_TO | DELETED
            )
            if found < 0:
                return False
            self._watched[directory] = found
            self._names[found] = name
        return True

    def changed(self) -> set[str] | None:
        """The names of what has changed since it was asked last; None: perhaps everything has."""
        found: set[str] = set()
        while True:
            try:
                data = os.read(self.descriptor, READ_BYTES)
            except BlockingIOError:
                return found
            except OSError:
                return None
            at = 0
            while at + EVENT.size <= len(data):
                watch, _, _, size = EVENT.unpack_from(data, at)
                at += EVENT.size + size
                if watch == OVERFLOW:
                    return None
                if watch in self._names:
                    found.add(self._names[watch])

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
