"""Processes that only read the log, kept alive beside the broker: started again when they die, ended when it stops.

They are processes so that they can be slow: the kernel gives them what others leave. Knows no Parquet and no Flight."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

BACKOFF_SECONDS = (1.0, 5.0, 30.0)
STEADY_SECONDS = 60.0  # one that ran so long is started again at once, as after its first death
STOP_SECONDS_MAX = 10.0


class Sidecar(NamedTuple):
    """died: tells of its death, with `why` and `start_seconds`; reloads: whether SIGHUP has it read its settings"""

    command: Sequence[str]
    died: Callable[..., None]
    reloads: bool = False


class Sidecars:
    """One process for each companion, each with a thread that waits for its end."""

    def __init__(
        self, companions: Sequence[Sidecar], *, open_process: Callable[..., Any] = subprocess.Popen,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._companions, self._open, self._clock = companions, open_process, clock
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._processes: dict[int, Any] = {}
        self._threads = [
            threading.Thread(
                target=self._keep, args=(number, each), name=f"rumq-beside-{number}", daemon=True
            )
            for number, each in enumerate(companions)
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
        """Pass on that there are new settings."""
        with self._lock:
            for number, process in self._processes.items():
                if self._companions[number].reloads:
                    process.send_signal(signal.SIGHUP)

    def _keep(self, number: int, companion: Sidecar) -> None:
        died = 0
        while True:
            with self._lock:
                if self._stopping.is_set():
                    return
                began = self._clock()
                try:
                    process = self._open(
                        companion.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
                    )
                except OSError as fault:
                    process, why = None, str(fault)
                else:
                    self._processes[number] = process
            if process is not None:
                why = f"exit status {process.wait()}"
            if self._stopping.is_set():
                return
            if self._clock() - began >= STEADY_SECONDS:
                died = 0
            wait = BACKOFF_SECONDS[min(died, len(BACKOFF_SECONDS) - 1)]
            died += 1
            companion.died(why=why, start_seconds=wait)
            self._stopping.wait(wait)
