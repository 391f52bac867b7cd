"""One partition of a source, pulled by lsn over Flight and published to a target over MQTT 5, batch by batch.

At least once: QoS 1, and a batch that was interrupted is repeated. Exactly once: QoS 2, with the sink's retained
progress marker at the target, so that a repeated batch goes on where it was left.
docs/decisions/0016-a-sink-that-is-once.md"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from rumq.errors import ConnectionLost, RumqError
from rumq.flight.client import LogClient
from rumq.flight.copies_client import CopiesClient
from rumq.flight.tickets import Ticket
from rumq.mirror.mirrored_rows import COLUMNS, STATE_TOPICS, mirrored
from rumq.mirror.position import MirrorPosition, PositionFile
from rumq.sink.sink_connection import SinkPartition, publish_all
from rumq.sink.sink_options import SinkOptions

Publish = Callable[[Iterator[pa.RecordBatch], SinkOptions, SinkPartition], int]


@dataclass(frozen=True)
class MirrorRules:
    """name: of the mirror, unique at the target; source, target: names of the sites

    targets: addresses of one broker or of the nodes of one cluster; once: exactly once
    records_max, bytes_max: of a batch; first: "earliest" or "latest", where a mirror without position begins"""

    name: str
    source: str
    target: str
    targets: tuple[SinkOptions, ...]
    filters: tuple[str, ...] = ()
    prefix: str = ""
    once: bool = False
    records_max: int = 20_000
    bytes_max: int = 8 << 20
    first: str = "earliest"

    @property
    def of_messages(self) -> str:
        return "|".join((self.source, self.target, self.prefix, str(self.once), *self.filters))


class PartitionMirror:
    """client: of the source, for this partition's thread alone; event: takes the operator's events"""

    def __init__(
        self, rules: MirrorRules, partition: str, client: LogClient | CopiesClient, file: PositionFile,
        publish: Publish = publish_all, event: Callable[..., None] = lambda name, **fields: None,
    ) -> None:  # fmt: skip
        self._event = event
        self._rules, self._partition, self._client, self._file = rules, partition, client, file
        self._publish = publish
        self._target = 0  # the one that answered last
        self._position = file.maybe_read()

    def step(self) -> int:
        """Copy the next batch; how many records it has: 0 if there are none.

        raises: RumqError, OSError: the same batch is to be tried again"""
        head = self._client.heads()[self._partition]
        position = self._position
        if position is None:
            at = head["first"] if self._rules.first == "earliest" else head["committed"]
            position = MirrorPosition(0, at, at, True, self._rules.of_messages)
            self._keep(position)
        if position.done:
            start = max(position.end, head["first"])
            if start > position.end:
                self._event(
                    "mirror.gap", name=self._rules.name, partition=self._partition, first_lsn=position.end,
                    next_lsn=start, why="retention has removed them at the source",
                )  # fmt: skip
            end = min(head["committed"], start + self._rules.records_max)
            if end <= start:
                return 0
            end = self._client.end_within(self._partition, start, end, self._rules.bytes_max)
            position = MirrorPosition(position.batch + 1, start, end, False, self._rules.of_messages)
            self._keep(position)
        elif self._rules.once and position.rules != self._rules.of_messages:
            raise RumqError(
                f"batch {position.batch} of {self._partition} was begun with other sites, topics or prefix: let it end "
                "with those, then change them"
            )
        self._copy(position)
        self._keep(replace(position, done=True))
        return position.end - position.start

    @property
    def next_lsn(self) -> int:
        position = self._position
        return 0 if position is None else position.end if position.done else position.start

    def _keep(self, position: MirrorPosition) -> None:
        self._file.write(position)
        self._position = position

    def _copy(self, position: MirrorPosition) -> None:
        """raises: ConnectionLost once every target is away"""
        rules = self._rules
        for _ in rules.targets:
            target = rules.targets[self._target]
            try:
                self._publish(self._rows(position), self._options(target), self._sink(position.batch))
                return
            except ConnectionLost as fault:
                lost = fault
                self._target = (self._target + 1) % len(rules.targets)
        raise lost

    def _rows(self, position: MirrorPosition) -> Iterator[pa.RecordBatch]:
        ticket = Ticket(
            partition=self._partition, start=position.start, end=position.end, columns=COLUMNS,
            topics=self._rules.filters or ("#",),
        )  # fmt: skip
        for batch in self._client.batches(ticket):
            rows = mirrored(batch, self._rules.source, self._rules.target, self._rules.prefix)
            if rows.num_rows:
                yield rows

    def _options(self, target: SinkOptions) -> SinkOptions:
        stream, generation, _ = self._partition.split("/")
        name = f"{self._rules.name}-{stream}-{generation}"
        return replace(
            target, qos=2 if self._rules.once else 1, once=self._rules.once, client_id=f"rumq-mirror-{name}",
            state_topic=f"{STATE_TOPICS}{name}",
        )  # fmt: skip

    def _sink(self, batch: int) -> SinkPartition:
        return SinkPartition(self._rules.name, batch, int(self._partition.rpartition("/p")[2]))
