"""A worker seen from outside: started, called with a time budget, killed when it does not answer.

Every way in which it can fail is a `FunctionFault`. Time is the budget's; knows no broker."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from typing import Literal

import pyarrow as pa

from rumq.functions.function_rows import as_batch, as_bytes
from rumq.functions.rules import FunctionRules
from rumq.functions.worker_protocol import (
    CALL,
    NO_MEMORY,
    NOT_LOADED,
    RAISED,
    READY,
    RESULT,
    WRONG,
    WorkerMessage,
    WorkerMessageReader,
    packed,
)

START_SECONDS_MAX = 60.0  # to import pyarrow and the function, whatever else the machine does
RESULT_BYTES_MAX = 64 * 2**20
RECEIVE_BYTES = 2**18
PROGRAM = "import sys; from rumq.functions.worker import main; main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))"
# Address space is what is bounded: no arena of 64 MiB for each thread, no pool that reserves.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}

Kind = Literal["raised", "stalled", "died", "memory", "result", "load"]
KINDS: dict[bytes, Kind] = {RAISED: "raised", WRONG: "result", NO_MEMORY: "memory", NOT_LOADED: "load"}


class FunctionFault(Exception):
    """kind: how it failed; why: one line, of a traceback the last one"""

    def __init__(self, kind: Kind, why: str) -> None:
        super().__init__(kind, why)
        self.kind, self.why = kind, why

    def __str__(self) -> str:
        return f"{self.kind}: {self.why}"

    @property
    def ends_worker(self) -> bool:
        """Whether another worker may do the same batch: the fault may be of what this one had been through."""
        return self.kind in ("stalled", "died", "memory")


class WorkerProcess:
    """It runs once it is made, and is loaded once `wait_ready` returns."""

    def __init__(self, rules: FunctionRules) -> None:
        """raises: OSError"""
        self._rules = rules
        self._sock, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-c", PROGRAM, str(theirs.fileno()), rules.code, str(rules.memory_bytes_max)]
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env={**os.environ, **ENVIRONMENT}, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,  # what it starts ends with it
            )  # fmt: skip
        self._sock.setblocking(False)
        self._reader = WorkerMessageReader(RESULT_BYTES_MAX)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        """raises: FunctionFault"""
        message = self._exchange(b"", time.monotonic() + START_SECONDS_MAX, "it was not loaded")
        if message.kind != READY:
            raise FunctionFault(KINDS.get(message.kind, "load"), message.sentence)

    def call(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Its result: columns of messages. raises: FunctionFault; after one that `ends_worker` close it"""
        until = time.monotonic() + self._rules.timeout_seconds
        message = self._exchange(packed(CALL, as_bytes(batch)), until, "no result")
        if message.kind != RESULT:
            raise FunctionFault(KINDS.get(message.kind, "result"), message.sentence)
        try:
            return as_batch(message.body)
        except (pa.ArrowInvalid, StopIteration) as fault:
            raise FunctionFault("died", f"its answer is no batch: {fault}") from None

    def close(self) -> None:
        """Kill it, with what it has started."""
        self._sock.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _exchange(self, request: bytes, until: float, what: str) -> WorkerMessage:
        """Send the request and return the answer. raises: FunctionFault"""
        left, unsent = until - time.monotonic(), memoryview(request)
        poll = select.poll()
        while left > 0:
            poll.register(self._sock, select.POLLIN | (select.POLLOUT if unsent else 0))
            poll.poll(left * 1000)
            try:
                with contextlib.suppress(BlockingIOError):
                    unsent = unsent[self._sock.send(unsent) :] if unsent else unsent
                with contextlib.suppress(BlockingIOError):
                    data = self._sock.recv(RECEIVE_BYTES)
                    if not data:
                        raise FunctionFault("died", self._end())
                    self._reader.add(data)
            except ConnectionError:
                raise FunctionFault("died", self._end()) from None
            try:
                if (message := self._reader.maybe_message()) is not None:
                    return message
            except ValueError as fault:
                raise FunctionFault("died", str(fault)) from None
            left = until - time.monotonic()
        raise FunctionFault("stalled", f"{what} within {self._seconds(what):g} s")

    def _seconds(self, what: str) -> float:
        return self._rules.timeout_seconds if what == "no result" else START_SECONDS_MAX

    def _end(self) -> str:
        status = self._process.wait()
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return f"the worker ended: {how}"
