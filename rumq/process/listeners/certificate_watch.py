"""Certificates that are renewed: files are looked at every few seconds, and read again when they have changed.

A file counts as changed once its content differs and has been still from one look to the next: a certificate and its
key are two files, mostly not written at once. What is broken changes nothing, and is told once until it changes again.
Knows neither sockets nor who uses the certificates."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import trio

from rumq.errors import RumqError
from rumq.process.listeners.setting_changes import digest

LOOK_SECONDS = 5.0  # between two looks
Stamp = tuple[int, ...]


class CertificateWatch:
    """The files of one owner: the listeners, the links between nodes, the gateway or Flight."""

    def __init__(
        self,
        of: str,
        paths: Callable[[], Iterable[str]],
        renew: Callable[[], None],
        tell: Callable[..., None],
    ) -> None:
        """of: whose they are, in events; paths: of all files and directories, as the settings name them now

        renew: has new connections use them; raises RumqError, with nothing changed"""
        self._of, self._paths, self._renew, self._tell = of, paths, renew, tell
        self._in_force: dict[str, bytes] = {}  # digests of what was read last, refused files among them
        self._in_force_stamps: dict[str, Stamp] = {}
        self._seen: dict[str, Stamp] = {}  # at the last look
        self._next = 0.0
        self.note()

    def note(self) -> None:
        """The files as they are were read just now, by whoever owns them."""
        self._in_force_stamps = self._seen = self._stamps()
        self._in_force = self._digests()

    def look(self) -> None:
        """Renew what has changed. cost: a stat(2) of each file, and a read of all where one differs"""
        if self.has_changed():
            self.read_again()

    def look_sometimes(self, now: float) -> None:
        """The same, at most every `LOOK_SECONDS`: for a loop that turns more often. now: monotonic seconds"""
        if now >= self._next:
            self._next = now + LOOK_SECONDS
            self.look()

    def has_changed(self) -> bool:
        """Whether the files differ from what was read last, and are still. May be called from another thread."""
        stamps = self._stamps()
        was, self._seen = self._seen, stamps
        if stamps == self._in_force_stamps or stamps != was:
            return False
        if self._digests() != self._in_force:
            return True
        self._in_force_stamps = stamps  # written again with the same content
        return False

    def read_again(self) -> bool:
        """Have them read, whether they have changed or not. returns: False if they were refused"""
        self.note()
        try:
            self._renew()
        except (RumqError, OSError) as fault:
            self._tell("certificate.refused", of=self._of, why=str(fault))
            return False
        self._tell("certificate.renewed", of=self._of, files=sorted(self._in_force))
        return True

    async def run(self) -> None:
        """Look until cancelled; files are read by another thread, and renewed by this one."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            if await trio.to_thread.run_sync(self.has_changed):
                self.read_again()

    def _stamps(self) -> dict[str, Stamp]:
        return {path: stamp_of(path) for path in self._paths() if path}

    def _digests(self) -> dict[str, bytes]:
        return {path: digest(path) for path in self._paths() if path}


def stamp_of(path: str) -> Stamp:
    """What changes with a file's content: behind links, as renewals often exchange a link. Empty: it is not there"""
    try:
        found = os.stat(path)
        more = [each.stat().st_mtime_ns for each in os.scandir(path)] if os.path.isdir(path) else []
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, *sorted(more))
