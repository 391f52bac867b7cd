"""One partition of the log, done by one function: batch by batch, in order, each result published once.

A batch is written down before the function gets it, its messages before they are published, both synced. A retained
progress marker at the broker says how far a batch is (decision 16). So it may end at any moment: decision 62."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from rumq.errors import RumqError
from rumq.functions.function_counts import FunctionCounts
from rumq.functions.function_rows import derived, for_function, messages_of
from rumq.functions.result_file import ResultFile
from rumq.functions.rules import STATE_TOPICS, FunctionRules
from rumq.functions.worker_process import FunctionFault
from rumq.mirror.position import MirrorPosition, PositionFile
from rumq.sink.publish_encoder import encode
from rumq.sink.sink_connection import SinkPartition
from rumq.sink.sink_options import SinkOptions
from rumq.table.errors import BadRow

BYTES_MAX = 8 * 2**20  # of a batch
ROWS_A_PIECE = 65_536


class BatchHeld(Exception):
    """The batch is to be tried again later: its function has failed, and the rule is to hold."""

    def __init__(self, fault: FunctionFault) -> None:
        super().__init__(fault)
        self.fault = fault


class LogPart(Protocol):
    """What is read of the log. first, end: lsns of the partition, of committed records"""

    def ends(self, partition: str) -> tuple[int, int]: ...
    def end_within(self, partition: str, start: int, end: int, bytes_max: int) -> int: ...
    def batches(self, partition: str, start: int, end: int) -> Iterator[pa.RecordBatch]: ...


Publish = Callable[[Iterator[pa.RecordBatch], SinkOptions, SinkPartition], int]
Call = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class FunctionPorts:
    """call: the function, raises FunctionFault; publish: as `publish_all`; event: takes the operator's events"""

    log: LogPart
    call: Call
    publish: Publish
    event: Callable[..., None]
    counts: FunctionCounts
    now_us: Callable[[], int]


class PartitionFunction:
    """folder: of the function's state; broker: how to reach it"""

    def __init__(
        self, rules: FunctionRules, partition: str, folder: Path, broker: SinkOptions, ports: FunctionPorts,
        *, began_later: bool = False,
    ) -> None:  # fmt: skip
        """began_later: than the function, so the partition is read from its first record

        raises: OSError, RumqError"""
        self._rules, self._partition, self._ports = rules, partition, ports
        self._file, self._result = PositionFile(folder, partition), ResultFile(folder, partition)
        self._position = self._file.maybe_read()
        self._began_later = began_later
        stream, generation, _ = partition.split("/")
        name = f"{rules.name}-{stream}-{generation}"
        self._broker = replace(
            broker, qos=2, once=True, client_id=f"rumq-function-{name}", state_topic=f"{STATE_TOPICS}{name}"
        )

    def step(self) -> int:
        """Do the next batch; how many records of the log it covers: 0 if there are none.

        raises: BatchHeld, RumqError, OSError: the same batch is to be tried again"""
        position = self._next_position()
        if position is None:
            return 0
        messages = self._result.maybe_read(position.batch)
        if messages is None:
            messages = self._done(position)
            if messages.num_rows:
                self._result.write(position.batch, messages)
        rows = self._ports.publish(pieces(messages), self._broker, self._sink(position.batch))
        self._keep(replace(position, done=True))
        self._result.remove()
        self._ports.counts.count(records=position.end - position.start, results=rows)
        return position.end - position.start

    def behind(self) -> int:
        """Records of the partition that it has not done."""
        _, end = self._ports.log.ends(self._partition)
        position = self._position
        return 0 if position is None else end - (position.end if position.done else position.start)

    def _next_position(self) -> MirrorPosition | None:
        """The batch that was begun, or the next one, written down; None: there is nothing new."""
        first, committed = self._ports.log.ends(self._partition)
        position = self._position
        if position is None:
            at = first if self._began_later or self._rules.start == "earliest" else committed
            # Numbers that no earlier life of this function had, whose markers may be at the broker.
            position = self._keep(MirrorPosition(self._ports.now_us(), at, at, True, self._rules.code))
        if not position.done:
            return position
        start = max(position.end, first)
        if start > position.end:
            self._ports.event(
                "function.gap", name=self._rules.name, partition=self._partition, first_lsn=position.end,
                next_lsn=start, why="retention has removed them before the function had them",
            )  # fmt: skip
        end = min(committed, start + self._rules.records_max)
        if end <= start:
            return None
        end = self._ports.log.end_within(self._partition, start, end, BYTES_MAX)
        return self._keep(MirrorPosition(position.batch + 1, start, end, False, self._rules.code))

    def _done(self, position: MirrorPosition) -> pa.RecordBatch:
        """What is to be published for the batch: its results, or what its rule says if it failed. raises: BatchHeld"""
        parts = [for_function(each, self._rules.name) for each in self._rows(position)]
        parts = [each for each in parts if each.num_rows]
        if not parts:
            return derived(messages_of(no_messages()), self._rules.prefix, self._rules.name)
        batch = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
        try:
            made = derived(self._ports.call(batch), self._rules.prefix, self._rules.name)
            check_messages(made)
            return made
        except FunctionFault as fault:
            self._ports.counts.failed(fault.kind)
            # A function that cannot be loaded has done nothing wrong with this batch: nothing is skipped for it.
            rule = "hold" if fault.kind == "load" else self._rules.on_failure
            self._ports.event(
                "function.failed", name=self._rules.name, partition=self._partition, first_lsn=position.start,
                next_lsn=position.end, records=batch.num_rows, kind=fault.kind, why=fault.why, rule=rule,
            )  # fmt: skip
            if rule == "hold":
                raise BatchHeld(fault) from None
            kept = batch if rule == "pass" else batch.slice(0, 0)
            self._ports.counts.count(**{"passed" if rule == "pass" else "refused": batch.num_rows})
            return derived(messages_of(kept), self._rules.prefix, self._rules.name)

    def _rows(self, position: MirrorPosition) -> Iterator[pa.RecordBatch]:
        return self._ports.log.batches(self._partition, position.start, position.end)

    def _keep(self, position: MirrorPosition) -> MirrorPosition:
        self._file.write(position)
        self._position = position
        return position

    def _sink(self, batch: int) -> SinkPartition:
        return SinkPartition(self._rules.name, batch, int(self._partition.rpartition("/p")[2]))


def no_messages() -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"topic": pa.array([], pa.string()), "payload": pa.array([], pa.binary())})


def pieces(messages: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for at in range(0, messages.num_rows, ROWS_A_PIECE):
        yield messages.slice(at, ROWS_A_PIECE)


def check_messages(messages: pa.RecordBatch) -> None:
    """Whether all of them can be published: topics without wildcards, sizes. raises: FunctionFault"""
    try:
        for each in pieces(messages):
            encode(each, qos=2)
    except (BadRow, RumqError) as fault:
        raise FunctionFault("result", f"its result cannot be published: {fault}") from None
