"""A command in a terminal of a size: its output as text, keys for it, another size, its end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from tests.cli.conftest import ENVIRONMENT, command

SECONDS_MAX = 30.0
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\r")


class Terminal:
    def __init__(self, *arguments: str, height: int = 24, width: int = 80, env: dict[str, str] | None = None) -> None:
        self._master, slave = pty.openpty()
        self.before = termios.tcgetattr(slave)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        names = {"TERM": "xterm-256color", "COLUMNS": "", "LINES": ""}
        self.process = subprocess.Popen(
            command(*arguments), stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env=ENVIRONMENT | names | (env or {}),
        )  # fmt: skip
        self._slave, self.raw, self._heard = slave, b"", 0

    def key(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, height: int, width: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        os.kill(self.process.pid, signal.SIGWINCH)

    def expect(self, pattern: str) -> str:
        """Wait until the text after what was expected last has this; returns the text up to it."""
        until = time.monotonic() + SECONDS_MAX
        while True:
            text = ESCAPES.sub("", self.raw.decode(errors="replace"))
            if (found := re.compile(pattern).search(text, self._heard)) is not None:
                start, self._heard = self._heard, found.end()
                return text[start : found.end()]
            assert self._read(max(0.0, until - time.monotonic())), f"no {pattern!r} in {text[self._heard :][-600:]!r}"

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            return False
        self.raw += data
        return bool(data)

    def end(self) -> int:
        """The exit status; the terminal is as it was."""
        status = self.process.wait(SECONDS_MAX)
        while select.select([self._master], [], [], 0.0)[0] and self._read(0.0):
            pass
        assert termios.tcgetattr(self._slave) == self.before, "echo and line mode are back"
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._slave)
        os.close(self._master)
