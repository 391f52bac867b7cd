"""A process that exports, kept alive beside the broker: started again when it dies, ended when the broker stops.

It has a process of its own so that it can be slow: the kernel gives it what others leave. Knows no Parquet."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

BACKOFF_SECONDS = (1.0, 5.0, 30.0)
STOP_SECONDS_MAX = 10.0


class Exporting:
    """One process for each command, each with a thread that waits for its end."""

    def __init__(
        self, commands: Sequence[Sequence[str]], event: Callable[..., None], *,
        open_process: Callable[..., Any] = subprocess.Popen,
    ) -> None:  # fmt: skip
        self._event, self._open = event, open_process
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._processes: dict[int, Any] = {}
        self._threads = [
            threading.Thread(
                target=self._keep, args=(number, command), name=f"rumq-export-{number}", daemon=True
            )
            for number, command in enumerate(commands)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the processes: what they were writing is written again at the next start."""
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

    def _keep(self, number: int, command: Sequence[str]) -> None:
        died = 0
        while True:
            with self._lock:
                if self._stopping.is_set():
                    return
                try:
                    process = self._open(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                except OSError as fault:
                    process, why = None, str(fault)
                else:
                    self._processes[number] = process
            if process is not None:
                why = f"exit status {process.wait()}"
            if self._stopping.is_set():
                return
            wait = BACKOFF_SECONDS[min(died, len(BACKOFF_SECONDS) - 1)]
            died += 1
            self._event("lake.died", why=why, start_seconds=wait)
            self._stopping.wait(wait)
