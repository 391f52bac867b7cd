"""The store of one shard: its own partitions opened and recovered, stand-ins for those of other shards."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commitlog import OpenOptions, RealFiles, Store, StoreError, StoreLayout, StreamSpec, open_store
from commitlog.disk.space import segment_bytes
from commitlog.read.inventory import write_inventory
from commitlog.write.volatile import VolatilePartition
from rumq.errors import DataDirectoryError
from rumq.events.event_log import tell
from rumq.mqtt.topics import matches
from rumq.net.sockets.fd_passing import ShardSocket
from rumq.process.listeners.listening_sockets import Doorways
from rumq.process.wiring.disk_bounds import space_of
from rumq.process.wiring.missing_partition import STATE_STREAM
from rumq.process.wiring.streams import GENERATION
from rumq.settings.table import Settings
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.bus.writer_epoch import writer_epoch

if TYPE_CHECKING:  # a broker alone needs nothing of a cluster
    from commitlog.format.known_tail import KnownTail
    from rumq.process.shard.cluster_place import ClusterPlace

STATE_SEGMENT_BYTES = 16 << 20
STATUS = StreamSpec("_sys", (), 1, "memory")


@dataclass(frozen=True, slots=True)
class ShardEnvironment:
    """Environment of a shard. started: start of the broker, monotonic; ready: a pipe to report it, or -1"""

    data: str
    lock: int
    doorways: Doorways
    streams: list[StreamSpec]
    generation: int  # of the journals
    started: float
    sources: list[str]  # command line flags for another process with the same settings
    index: int = 0
    count: int = 1
    doors: list[ShardSocket] | None = None
    ready: int = -1
    restored: dict[str, int] = field(default_factory=dict)  # `commitlog.read.backup.take_restored`
    cluster: ClusterPlace | None = None


def open_shard_store(settings: Settings, place: ShardEnvironment) -> Store:
    """The shard's part of the store, recovered; findings are reported as events."""

    def volatile(index: int) -> VolatilePartition | RemotePartition:
        if place.index:
            return RemotePartition(STATUS, index, 0, GENERATION, 0)
        return VolatilePartition(STATUS, index, now_us=time.time_ns() // 1000)

    def elsewhere(spec: StreamSpec, index: int, number: int) -> RemotePartition | None:
        owner = index % place.count
        return None if owner == place.index else RemotePartition(spec, index, number, GENERATION, owner)

    now_us = time.time_ns() // 1000
    try:
        store = open_store(
            RealFiles(),
            place.data,
            StoreLayout(
                place.streams,
                matches,
                internal=internal_stream(settings),
                internal_number=place.index,
                internal_generation=place.generation,
                elsewhere=elsewhere,
                volatile=volatile if settings.sys.interval_seconds else None,
            ),
            OpenOptions(
                now_us,
                hot_bytes_max=settings.log.hot_bytes_max,
                boot_id=boot_id(),
                epoch=writer_epoch(now_us, place.cluster.office.lead.epoch if place.cluster is not None else None),
                tails=known_tails(place),
            ),
            lock=place.lock,
        )
    except StoreError as fault:
        raise DataDirectoryError(settings.data.dir, fault.problem) from fault
    partitions, recovered = list(store.own), list(store.recovered)
    if store.internal is not None and store.internal_recovered is not None:
        partitions.append(store.internal)
        recovered.append(store.internal_recovered)
    for partition, found in zip(partitions, recovered, strict=True):
        where = {"stream": partition.stream, "partition": partition.number}
        # The log of a leader that has died ends anywhere, which is no news where another one takes over.
        if not found.clean and (place.cluster is None or found.torn_bytes):
            ended = {"next_lsn": partition.next_lsn, "torn_bytes": found.torn_bytes}
            name = partition.directory.removeprefix(f"{place.data}/")
            is_copy = place.restored.get(name) == partition.next_lsn
            tell("log.restored" if is_copy else "log.recovered", **where, **ended)
        for gap in (*found.gaps, *found.short):
            tell("log.gap", **where, first_lsn=gap.base_lsn, next_lsn=gap.next_lsn, why=gap.why)
        for path in found.unreadable:
            tell("log.gap", **where, why=path)
    return store


def known_tails(place: ShardEnvironment) -> dict[str, KnownTail]:
    """What a process that has followed knows of the last segments, by directory."""
    tails = place.cluster.office.tails if place.cluster is not None else {}
    return {f"{place.data}/{key}": tail for key, tail in tails.items()}


def internal_stream(settings: Settings) -> StreamSpec:
    """The stream of the session journal, with the strongest durability of all streams."""
    wanted = {s.durability for s in settings.stream}
    durability = next(each for each in ("quorum", "disk", "process") if each in wanted)
    return StreamSpec(
        STATE_STREAM, (), 1, durability,
        segment_bytes(STATE_SEGMENT_BYTES, space_of(settings.data.dir).total_bytes), 86_400, None, None
    )  # fmt: skip


def boot_id() -> bytes:
    """The boot id of the machine: data that survives a kill may not survive a power loss."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return bytes.fromhex(file.read().strip().replace("-", ""))
    except OSError:
        return bytes(16)


def note_inventory(place: ShardEnvironment) -> None:
    """Once all partitions are open, write the list that the next start expects."""
    names = [f"{spec.name}/g{GENERATION}/p{n}" for spec in place.streams for n in range(spec.partitions)]
    names += [f"{STATE_STREAM}/g{place.generation}/p{number}" for number in range(place.count)]
    try:
        write_inventory(RealFiles(), place.data, names)
    except OSError as fault:
        tell("log.failed", stream=STATE_STREAM, partition=0, why=f"PARTITIONS was not written: {fault}")
