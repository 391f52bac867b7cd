"""Sidecar processes are restarted when they die, and ended when the broker stops."""

import signal
import sys
import threading
from collections.abc import Sequence
from queue import Queue
from typing import Any

from rumq.supervision import sidecars
from rumq.supervision.sidecars import Sidecar, Sidecars

SECONDS_MAX = 60.0  # a thread that takes longer fails the test


class Process:
    """A process that runs until it is told to end."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self.status: int | None = None
        self.name = ""
        self.signals: list[int] = []

    def send_signal(self, number: int) -> None:
        self.signals.append(number)

    def end(self, status: int) -> None:
        self.status = status
        self._ended.set()

    def wait(self) -> int:
        assert self._ended.wait(SECONDS_MAX)
        assert self.status is not None
        return self.status

    def poll(self) -> int | None:
        return self.status

    def terminate(self) -> None:
        self.end(-15)


def test_one_that_dies_is_started_again_and_a_stop_ends_it(monkeypatch: Any) -> None:
    monkeypatch.setattr(sidecars, "BACKOFF_SECONDS", (0.0,))
    started: Queue[Process] = Queue()
    told: list[dict[str, Any]] = []

    def start(command: list[str], **_: Any) -> Process:
        assert command == ["export", "it"]
        process = Process()
        started.put(process)
        return process

    kept = Sidecars([Sidecar(["export", "it"], lambda **fields: told.append(fields))], open_process=start)
    kept.start()
    started.get(timeout=SECONDS_MAX).end(1)
    second = started.get(timeout=SECONDS_MAX)
    assert told == [{"why": "exit status 1", "start_seconds": 0.0}]
    kept.stop()
    assert second.status == -15 and started.empty() and len(told) == 1


def test_one_that_ran_for_long_is_started_as_soon_as_after_its_first_death(monkeypatch: Any) -> None:
    monkeypatch.setattr(sidecars, "BACKOFF_SECONDS", (0.0, 0.001, 0.002))
    now = 1000.0
    started: Queue[Process] = Queue()
    told: Queue[float] = Queue()

    def start(command: list[str], **_: Any) -> Process:
        process = Process()
        started.put(process)
        return process

    kept = Sidecars(
        [Sidecar(["x"], lambda **fields: told.put(fields["start_seconds"]))],
        open_process=start,
        clock=lambda: now,
    )
    kept.start()
    waits = []
    for ran in (1, 1, 1, sidecars.STEADY_SECONDS, 1):
        process = started.get(timeout=SECONDS_MAX)
        now += ran
        process.end(1)
        waits.append(told.get(timeout=SECONDS_MAX))
    assert waits == [0.0, 0.001, 0.002, 0.0, 0.001]
    started.get(timeout=SECONDS_MAX)
    kept.stop()


def test_new_settings_that_come_while_a_process_starts_wait_until_it_can_read_them() -> None:
    """An interpreter that has just begun would die of the signal."""
    started: Queue[Any] = Queue()
    told: Queue[str] = Queue()
    reads = "import signal, sys; sys.exit(7 if signal.sigwait({signal.SIGHUP}) == signal.SIGHUP else 1)"

    def start(command: Sequence[str]) -> Any:
        process = sidecars.open_quiet(command)
        started.put(process)
        return process

    kept = Sidecars(
        [Sidecar([sys.executable, "-c", reads], lambda **fields: told.put(fields["why"]), True)],
        open_process=start,
    )
    kept.start()
    started.get(timeout=SECONDS_MAX)
    kept.reload()
    assert told.get(timeout=SECONDS_MAX) == "exit status 7"
    kept.stop()


def test_a_stop_before_the_start_is_a_stop() -> None:
    Sidecars([Sidecar(["x"], lambda **fields: None)]).stop()


def test_new_settings_are_passed_on_to_those_that_read_them() -> None:
    """Another one would die of the signal."""
    started: Queue[Process] = Queue()

    def start(command: list[str], **_: Any) -> Process:
        process = Process()
        process.name = command[0]
        started.put(process)
        return process

    kept = Sidecars(
        [Sidecar([name], lambda **fields: None, name == "reads") for name in ("reads", "exports")],
        open_process=start,
    )
    kept.start()
    both = [started.get(timeout=SECONDS_MAX), started.get(timeout=SECONDS_MAX)]
    kept.reload()
    assert {process.name: process.signals for process in both} == {"reads": [signal.SIGHUP], "exports": []}
    kept.stop()
