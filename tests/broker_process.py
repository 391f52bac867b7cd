"""One rumqd process on a data directory of a test: start it, hear its events, stop it, kill it, start it again.

It takes a free port by itself (port 0) and says which in its events. Knows no MQTT."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 60.0
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
# What a developer has set must not change what the tests see.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("RUMQ_")}

Event = dict[str, Any]


class Address(NamedTuple):
    host: str
    port: int


def run_command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "rumq", "run", "--host", "127.0.0.1", "--port", "0", *flags]


class Rumqd:
    """A broker that is not running yet; it is given the flags at each start."""

    def __init__(self, data: Path, *flags: str, descriptors: int = 0) -> None:
        """descriptors: how many it may have open at once; 0 as many as this process"""
        self.data, self.flags = data, flags
        self._before = ["prlimit", f"--nofile={descriptors}:{descriptors}"] if descriptors else []
        self.address = Address("127.0.0.1", 0)
        self.events: list[Event] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._listener: threading.Thread | None = None
        self._heard = threading.Condition()
        self._ended = False

    # --- its life

    def command(self) -> list[str]:
        return [*self._before, *run_command("--data", str(self.data), *self.flags)]

    def start(self) -> None:
        """Return once it accepts clients. raises: AssertionError with its last words when it never does"""
        self._launch()
        self.address = Address("127.0.0.1", self.event("broker.ready")["port"])

    def try_start(self) -> bool:
        """Start it; False if it was killed (by itself) before it accepted clients."""
        self._launch()
        with self._heard:
            self._heard.wait_for(lambda: self._ended or self.named("broker.ready"), SECONDS_MAX)
        if not self.named("broker.ready"):
            assert self.process.wait(SECONDS_MAX) == -signal.SIGKILL, self.events[-5:]
            return False
        self.address = Address("127.0.0.1", self.event("broker.ready")["port"])
        return True

    def _launch(self) -> None:
        if self._listener is not None:
            # The end of the last process must not be taken for the end of this one.
            self._listener.join(SECONDS_MAX)
        self.events, self._ended = [], False
        self._process = subprocess.Popen(
            self.command(),
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        self._listener = threading.Thread(target=self._hear, args=(self._process,), daemon=True)
        self._listener.start()

    def kill(self) -> None:
        """kill -9: nothing is flushed, nobody is told."""
        self.process.kill()
        self.process.wait()

    def wait_for_death(self, seconds: float) -> None:
        """Give it so long to die by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def stop(self) -> int:
        """SIGTERM; returns the exit status, once all that it said has been heard."""
        self.process.terminate()
        return self.ended()

    def ended(self) -> int:
        """Its exit status, waited for, once all that it said has been heard."""
        status = self.process.wait(STOP_SECONDS_MAX)
        assert self._listener is not None
        self._listener.join(SECONDS_MAX)
        return status

    def hang_up(self) -> None:
        """SIGHUP: the settings are read again."""
        self.process.send_signal(signal.SIGHUP)

    def end(self) -> None:
        """Whatever its state, it is gone after this."""
        if self._process is not None and self._process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    # --- what it says

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"event": "", "text": line.decode(errors="replace").rstrip()}
            with self._heard:
                self.events.append(event)
                self._heard.notify_all()
        with self._heard:
            self._ended = True
            self._heard.notify_all()

    def named(self, *names: str) -> list[Event]:
        """The events of these names since the start."""
        return [event for event in self.events if event["event"] in names]

    def event(self, *names: str, number: int = 1) -> Event:
        """The `number`-th event of these names since the start, waited for."""
        until = time.monotonic() + SECONDS_MAX
        with self._heard:
            while len(found := self.named(*names)) < number:
                left = until - time.monotonic()
                assert left > 0 and not self._ended, f"no {names}; last said: {self.events[-5:]}"
                self._heard.wait(left)
        return found[number - 1]

    def heard(self, is_it: Callable[[Event], bool]) -> Event:
        """The first event since the start of which that holds, waited for.

        What a client sees may be seen before what the broker has said of it is heard."""
        until = time.monotonic() + SECONDS_MAX
        with self._heard:
            while not (found := [event for event in self.events if is_it(event)]):
                left = until - time.monotonic()
                assert left > 0 and not self._ended, f"never said; last said: {self.events[-5:]}"
                self._heard.wait(left)
        return found[0]

    # --- what it uses

    def memory_bytes(self) -> int:
        """Its own memory, without the files it has mapped."""
        for line in self._proc("status").splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no RssAnon in /proc")

    def cpu_seconds(self) -> float:
        """User and system time of all its threads so far."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND

    def descriptors(self) -> list[int]:
        return sorted(int(name) for name in os.listdir(f"/proc/{self.process.pid}/fd"))

    def limit_descriptors(self, spare: int) -> None:
        """From now on it can open `spare` files or sockets more than it has."""
        taken = self.descriptors()
        limit = next(n for n in range(len(taken), 1 << 20) if n - sum(fd < n for fd in taken) == spare)
        hard = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (limit, hard))

    def _proc(self, name: str) -> str:
        return Path(f"/proc/{self.process.pid}/{name}").read_text()
