"""Sidecar processes: exporters and the Flight server, restarted when they die and ended with the broker.

They run in processes of their own, so that the kernel schedules them behind the shards."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from rumq.loop.backoff import Backoff
from rumq.supervision.broker_parent import environment_of_sidecar

BACKOFF_SECONDS = (1.0, 5.0, 30.0)
STEADY_SECONDS = 60.0
STOP_SECONDS_MAX = 10.0


class Process(Protocol):
    """What is used of `subprocess.Popen`."""

    def wait(self) -> int: ...
    def poll(self) -> int | None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...
    def send_signal(self, number: int, /) -> None: ...


def open_quiet(command: Sequence[str]) -> Process:
    """raises: OSError"""
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment_of_sidecar())


class Sidecar(NamedTuple):
    """died: reports a death, with `why` and `start_seconds`

    reloads: whether SIGHUP makes it read its settings; it is started with SIGHUP blocked, and waits for it"""

    command: Sequence[str]
    died: Callable[..., None]
    reloads: bool = False


class Sidecars:
    """One process for each sidecar, each with a thread that waits for its end."""

    def __init__(
        self, sidecars: Sequence[Sidecar], *, open_process: Callable[[Sequence[str]], Process] = open_quiet,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._sidecars, self._open, self._clock = sidecars, open_process, clock
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._processes: dict[int, Process] = {}
        self._threads = [
            threading.Thread(target=self._supervise, args=(number, each), name=f"rumq-sidecar-{number}", daemon=True)
            for number, each in enumerate(sidecars)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the processes: what an exporter was writing is written again at the next start."""
        with self._lock:
            self._stopping.set()
            for process in self._processes.values():
                process.terminate()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(STOP_SECONDS_MAX)
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()

    def reload(self) -> None:
        """Forward SIGHUP: there are new settings."""
        with self._lock:
            for number, process in self._processes.items():
                if self._sidecars[number].reloads:
                    process.send_signal(signal.SIGHUP)

    def _supervise(self, number: int, sidecar: Sidecar) -> None:
        backoff = Backoff(BACKOFF_SECONDS, STEADY_SECONDS)
        if sidecar.reloads:
            # Of this thread and the processes that it starts: one that cannot read its settings yet would die of it.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        while True:
            with self._lock:
                if self._stopping.is_set():
                    return
                started = self._clock()
                process: Process | None = None
                try:
                    process = self._processes[number] = self._open(sidecar.command)
                except OSError as fault:
                    why = str(fault)
            if process is not None:
                why = f"exit status {process.wait()}"
            if self._stopping.is_set():
                return
            wait = backoff.died(self._clock() - started)
            sidecar.died(why=why, start_seconds=wait)
            self._stopping.wait(wait)
