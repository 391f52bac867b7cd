"""Disk space of the log: how full the disk is, when it will be full, and which segments go so that it never is.

Which segments go, and how much is kept free, are rules of `space`; here they meet what sessions, exports and
other shards need. docs/guides/operating.md, "Disk usage"."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from commitlog import Partition, Store
from commitlog.disk.space import FillRate, Sealed, VolumeSpace, free_wanted, missing, oldest_first
from commitlog.write.retention import SegmentRemoval
from rumq.loop.ports import Clock, EventSink
from rumq.loop.stage import Stage
from rumq.shards.bus import messages as m
from rumq.shards.retention.bounds import RetentionBounds
from rumq.shards.retention.space_events import SpaceEvents

COUNT_SECONDS = 10.0  # between two counts of all segments' bytes; while segments are removed each look counts
SHARED_NEED_FROM = 1.25  # x `wanted`: below so much free space, shards exchange how much space they need
HEARD_SECONDS = 2.0  # within this time the other shards have said what they need
OLDEST_TOLD = 64
ROLL_PART = 8  # a segment below 1/8 of its full size is not sealed early


@dataclass(frozen=True, slots=True)
class DiskStatistics:
    """free_bytes, total_bytes: None before the first measurement; free_wanted: below it segments go, or publishers are
    refused; seconds_to_full: at the rate of the last minutes, None: never; yields: whether segments go

    removed_records: for want of space, since the start"""

    free_bytes: int | None
    total_bytes: int | None
    free_wanted: int
    bytes_per_second: float
    seconds_to_full: float | None
    yields: bool
    removed_records: int


class SpacePeers(Protocol):
    """Segments of other shards, on the same disk: `rumq.shards.peers.peers`."""

    def trimmable(self) -> list[m.Trimmable]:
        """As each other shard said last."""

    def say_all(self, message: m.AnyMessage) -> None: ...


class Probe(Protocol):
    """latest: a new measurement, reset here; free_bytes_min: with less free space publishers are refused

    `rumq.shards.write_path.free_space`"""

    latest: VolumeSpace | None

    @property
    def free_bytes_min(self) -> int: ...


class Remover(Protocol):
    """`rumq.shards.retention.segment_removal`. roll: ends a partition's active segment"""

    roll: Callable[[int], None]
    on_removed: list[Callable[[SegmentRemoval, int, int, str], None]]

    def carry_out(self, partition: Partition, removal: SegmentRemoval, why: str) -> None: ...


@dataclass(frozen=True, slots=True)
class SpaceSettings:
    """percent: of the log's room is kept free; wanted_percent: below it, what sessions and exports need goes too

    is_first: this shard reports for all"""

    percent: float
    wanted_percent: float
    is_first: bool


class DiskSpace(Stage):
    """Of one shard. told: the operator, and what went for room"""

    def __init__(
        self, store: Store, bounds: RetentionBounds, peers: SpacePeers, probe: Probe, remover: Remover,
        clock: Clock, events: EventSink, settings: SpaceSettings,
    ) -> None:  # fmt: skip
        self._store, self._bounds, self._peers = store, bounds, peers
        self._probe, self._remover, self._clock = probe, remover, clock
        self.told = SpaceEvents(clock, events)
        self.settings = settings
        remover.on_removed.append(self.removed)
        self.space: VolumeSpace | None = None  # what the last look at the volume found
        self.log_bytes = 0  # bytes of all shards' segments
        self._rate = FillRate()
        self._removed_bytes = 0  # bytes that any retention has removed since the last look
        self._next_count = 0.0
        self._near_since: float | None = None

    @property
    def reserve(self) -> int:
        return self._probe.free_bytes_min

    @property
    def yields(self) -> bool:
        """Whether any partition here lets segments go for room."""
        return any(partition.spec.yields for partition in self._store.own)

    @property
    def wanted(self) -> int:
        """So much is to be free."""
        assert self.space is not None
        return free_wanted(self.space, self.log_bytes, self.settings.percent, self.reserve)

    def has_room(self, size: int) -> bool:
        """Whether so many bytes may be written that are no records: publishers are not refused for it."""
        return self.space is None or self.space.free_bytes - size >= self.reserve

    def end_turn(self) -> None:
        """After a measurement: tell, and let go of what must go."""
        probe = self._probe
        if probe.latest is None:
            return
        self.space, probe.latest = probe.latest, None
        is_near = self._near_since is not None
        if self._clock.monotonic >= self._next_count:
            self._next_count = self._clock.monotonic + COUNT_SECONDS
            self._count(is_near)
        elif is_near:
            self._count(False)
        removed_bytes, self._removed_bytes = self._removed_bytes, 0
        self._rate.take(self.space.free_bytes, removed_bytes, self._clock.monotonic)
        if self.settings.is_first:
            self.told.look_ahead(
                self.seconds_to_full(), free_bytes=self.space.free_bytes,
                bytes_per_second=self._rate.bytes_per_second, yields=self.yields,
            )  # fmt: skip
        if not self.yields:
            return
        if self.space.free_bytes > self.wanted * SHARED_NEED_FROM:
            self._near_since = None
        elif self._near_since is None:
            self._near_since = self._clock.monotonic
            self._count(True)
        if self.space.free_bytes < self.wanted and not self._is_removing():
            self._make_room()
        self.told.maybe_eased(self.space.free_bytes)

    def removed(self, removal: SegmentRemoval, records: int, size: int, why: str) -> None:
        """Segments have been removed, for whatever reason."""
        self._removed_bytes += size
        if why == "space":
            self.told.count(len(removal.paths), records, size)

    def seconds_to_full(self) -> float | None:
        """When, at the rate of the last minutes, the oldest segments go or publishers are refused; None: never."""
        if self.space is None:
            return None
        least = self.wanted if self.yields else self.reserve
        return self._rate.seconds_to(self.space.free_bytes - least)

    def statistics(self) -> DiskStatistics:
        space = self.space
        return DiskStatistics(
            free_bytes=space.free_bytes if space is not None else None,
            total_bytes=space.total_bytes if space is not None else None,
            free_wanted=self.wanted if space is not None and self.yields else self.reserve,
            bytes_per_second=self._rate.bytes_per_second,
            seconds_to_full=self.seconds_to_full(),
            yields=self.yields,
            removed_records=self.told.records,
        )

    # Room

    def _is_removing(self) -> bool:
        return any(partition.segments.removing for partition in self._store.own)

    def _count(self, tells_needs: bool) -> None:
        here = sum(partition.segments.bytes for partition in self._store.own)
        others = self._peers.trimmable()
        self.log_bytes = here + sum(each.log_bytes for each in others)
        if others:
            if tells_needs:
                self._bounds.tell_needs()
            oldest = sorted(sealed for line in self._lines(True)[1] for sealed in line)[:OLDEST_TOLD]
            self._peers.say_all(m.Trimmable(here, [(sealed.ts_us, sealed.bytes) for sealed in oldest]))

    def _lines(self, spare_wanted: bool) -> tuple[list[Partition], list[list[Sealed]]]:
        """The partitions that yield, and of each the segments that may go. spare_wanted: what nobody waits for"""
        partitions = [partition for partition in self._store.own if partition.spec.yields]
        return partitions, [partition.sealed(self._below(partition, spare_wanted)) for partition in partitions]

    def _below(self, partition: Partition, spare_wanted: bool) -> int | None:
        bounds = [self._bounds.retained(partition.index)]
        if spare_wanted:
            bounds += [self._bounds.sessions(partition.index), self._bounds.exporter(partition)]
        return min((lsn for lsn in bounds if lsn is not None), default=None)

    def _make_room(self) -> None:
        space = self.space
        assert space is not None
        others = self._peers.trimmable()
        least = free_wanted(space, self.log_bytes, self.settings.wanted_percent, self.reserve)
        is_new = self._clock.monotonic - (self._near_since or self._clock.monotonic) < HEARD_SECONDS
        if others and is_new and space.free_bytes >= least:
            return
        elsewhere = [Sealed(*each) for other in others for each in other.oldest]
        needed = missing(space, self.log_bytes, self.wanted, self.reserve)
        partitions, lines = self._lines(True)
        there_is = sum(sealed.bytes for line in [*lines, elsewhere] for sealed in line)
        pressing = missing(space, self.log_bytes, least, self.reserve)
        takes_wanted = pressing > there_is
        if takes_wanted:
            partitions, lines = self._lines(False)
            needed = pressing
            there_is = sum(sealed.bytes for line in [*lines, elsewhere] for sealed in line)
        counts = oldest_first(lines, elsewhere, needed)
        for partition, count in zip(partitions, counts, strict=True):
            removal = partition.take_oldest(count)
            if removal is not None:
                self.told.low(
                    takes_wanted, free_bytes=space.free_bytes, free_wanted=self.wanted, log_bytes=self.log_bytes
                )
                self._remover.carry_out(partition, removal, "space")
        if needed > there_is:
            self._roll_one(partitions, takes_wanted)

    def _roll_one(self, partitions: list[Partition], takes_wanted: bool) -> None:
        """What is still written to is all that is left: end the oldest, so that it may go (or be exported first)."""
        rolls = []
        for partition in partitions:
            if not partition.segments.files:
                continue
            active = partition.segments.active
            if active.bytes < partition.spec.segment_bytes_max // ROLL_PART:
                continue
            wanted = self._bounds.sessions(partition.index)
            if takes_wanted or wanted is None or wanted > active.base_lsn:
                rolls.append((active.first_ts, partition.index))
        if rolls:
            self._remover.roll(min(rolls)[1])
