"""A TCP line that can be cut behind any byte: what is on its way then is gone. Knows no MQTT."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close sends RST, and drops what was not sent
CHUNK_BYTES = 65_536


class Cutter:
    """Listens on `port`, and passes bytes on to `target` and back."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lines: list[Line] = []
        self._is_plugged = threading.Event()
        self._is_plugged.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, size: int) -> None:
        """End the newest line once so many bytes more have passed, either way; one that ends before is not cut."""
        if self._lines:
            self._lines[-1].bytes_left = size

    def unplug(self) -> None:
        """What either end sends goes nowhere, and it is told nothing; new connections are not answered."""
        self._is_plugged.clear()
        for line in self._lines:
            line.is_dead = True

    def plug_in(self) -> None:
        """New connections pass; those of before have failed."""
        for line in self._lines:
            if line.is_dead:
                line.end()
        self._is_plugged.set()

    def close(self) -> None:
        self._listener.close()
        self._is_plugged.set()
        for line in self._lines:
            line.end()

    @property
    def cuts(self) -> int:
        return sum(line.was_cut for line in self._lines)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._is_plugged.wait()
                try:
                    far = socket.create_connection(self._target)
                except OSError:
                    near.close()
                    continue
                self._lines.append(Line(near, far))


class Line:
    """One connection through the cutter. bytes_left: until it is cut; None: it is not; is_dead: bytes are dropped"""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self._ends = near, far
        self.bytes_left: int | None = None
        self.was_cut = self.is_dead = False
        self._lock = threading.Lock()
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(CHUNK_BYTES):
                if self.is_dead:
                    continue
                size = self._take(len(chunk))
                target.sendall(chunk[:size])
                if size < len(chunk):
                    self.was_cut = True
                    break
        self.end()

    def _take(self, size: int) -> int:
        with self._lock:
            if self.bytes_left is None:
                return size
            taken = min(size, self.bytes_left)
            self.bytes_left -= taken
            return taken

    def end(self) -> None:
        for each in self._ends:
            with contextlib.suppress(OSError):
                if self.was_cut:
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                each.shutdown(socket.SHUT_RDWR)
            each.close()
