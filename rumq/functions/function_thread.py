"""One function at work: its partitions by turns, its worker, and how long it waits after a failure.

A fault of a partition delays that partition alone, a fault of the worker the function alone. Time is an argument."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from rumq.errors import RumqError
from rumq.functions.function_counts import FunctionCounts
from rumq.functions.local_log import LocalLog
from rumq.functions.partition_function import BatchHeld, FunctionPorts, PartitionFunction, Publish
from rumq.functions.rules import FunctionRules
from rumq.functions.worker_process import FunctionFault, WorkerProcess
from rumq.sink.sink_options import SinkOptions

RETRY_SECONDS = (0.1, 0.5, 2.0, 10.0, 30.0)
IDLE_SECONDS = 0.1  # between looks for new records
TRIES = 2  # of a batch whose worker ended: the second one by a fresh worker


class LoadedFunction(Protocol):
    """What is used of `WorkerProcess`."""

    def wait_ready(self) -> None: ...
    def call(self, batch: pa.RecordBatch) -> pa.RecordBatch: ...
    def close(self) -> None: ...


class FunctionCaller:
    """The function, whatever becomes of its worker: the next call has another one."""

    def __init__(
        self, rules: FunctionRules, event: Callable[..., None], *,
        start: Callable[[FunctionRules], LoadedFunction] = WorkerProcess,
    ) -> None:  # fmt: skip
        self._rules, self._event, self._start = rules, event, start
        self._worker: LoadedFunction | None = None

    def call(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """raises: FunctionFault"""
        for left in reversed(range(TRIES)):
            try:
                return self._ready().call(batch)
            except FunctionFault as fault:
                if fault.ends_worker or fault.kind == "load":
                    self.close()
                if not fault.ends_worker or not left:
                    raise
                self._event("function.restarted", name=self._rules.name, kind=fault.kind, why=fault.why)
        raise AssertionError("it has returned or raised")

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _ready(self) -> LoadedFunction:
        """raises: FunctionFault"""
        if self._worker is None:
            try:
                self._worker = self._start(self._rules)
            except OSError as fault:
                raise FunctionFault("load", f"no process for it: {fault.strerror}") from None
            self._worker.wait_ready()
        return self._worker


class FunctionThread:
    """folder: of this function's state, made if it is missing"""

    def __init__(
        self, rules: FunctionRules, data: str, folder: Path, broker: SinkOptions, publish: Publish,
        event: Callable[..., None], *, now: Callable[[], float], now_us: Callable[[], int],
    ) -> None:  # fmt: skip
        """raises: OSError, RumqError"""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._rules, self._folder, self._broker, self._event, self._now = rules, folder, broker, event, now
        self.counts = FunctionCounts()
        self._log = LocalLog(data, rules.filters)
        self._caller = FunctionCaller(rules, event)
        self._ports = FunctionPorts(self._log, self._caller.call, publish, event, self.counts, now_us)
        self._partitions: dict[str, PartitionFunction] = {}
        self._failed: dict[str, int] = {}
        self._wait_until: dict[str, float] = {}
        self._is_new = not any(folder.glob("*.json"))  # it has never run: so nothing is behind it

    def run(self, stopping: threading.Event) -> None:
        """Until `stopping` is set; a crash does no harm."""
        while not stopping.is_set():
            if not self.turn():
                stopping.wait(IDLE_SECONDS)
        self._caller.close()

    def turn(self) -> int:
        """A batch of each partition that has one; how many records."""
        if self._now() < self._wait_until.get("", 0.0):
            return 0
        try:
            self._look()
        except (RumqError, OSError) as fault:
            self._tell_failure("", fault)
            return 0
        return sum(self._step(name) for name in self._partitions)

    def _look(self) -> None:
        for name in self._log.look():
            if name not in self._partitions:
                self._partitions[name] = PartitionFunction(
                    self._rules, name, self._folder, self._broker, self._ports, began_later=not self._is_new
                )
        self._is_new = False

    def _step(self, name: str) -> int:
        if self._now() < self._wait_until.get(name, 0.0):
            return 0
        partition = self._partitions[name]
        is_held = True
        try:
            done = partition.step()
            self._failed.pop(name, None)
            is_held = False
            return done
        except BatchHeld:
            self._retry_later(name)
        except (RumqError, OSError, pa.ArrowException) as fault:
            self._tell_failure(name, fault)
        finally:
            with contextlib.suppress(KeyError):
                self.counts.stands(name, behind=partition.behind(), is_held=is_held)
        return 0

    def _retry_later(self, name: str) -> float:
        failed = self._failed.get(name, 0)
        seconds = RETRY_SECONDS[min(failed, len(RETRY_SECONDS) - 1)]
        self._failed[name] = failed + 1
        self._wait_until[name] = self._now() + seconds
        return seconds

    def _tell_failure(self, name: str, fault: Exception) -> None:
        """Of the log or the broker, not of the function."""
        self.counts.failed("publish")
        seconds = self._retry_later(name)
        self._event(
            "function.waits", name=self._rules.name, partition=name, why=str(fault) or type(fault).__name__,
            retry_seconds=seconds,
        )  # fmt: skip
