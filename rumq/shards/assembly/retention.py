"""Assembly of retention: which segments go, for their age, size or want of space, and which are packed."""

from __future__ import annotations

from dataclasses import dataclass

from rumq.shards.assembly.base import Base
from rumq.shards.assembly.cluster import ClusterParts
from rumq.shards.assembly.delivery import DeliveryParts
from rumq.shards.assembly.sessions import SessionParts
from rumq.shards.assembly.write_path import WriteParts
from rumq.shards.retention.bounds import RetentionBounds
from rumq.shards.retention.disk_space import DiskSpace, SpaceSettings
from rumq.shards.retention.segment_packer import SegmentPacker, packable
from rumq.shards.retention.segment_removal import SegmentRemover


@dataclass(frozen=True, slots=True)
class RetentionParts:
    bounds: RetentionBounds
    removal: SegmentRemover
    disk: DiskSpace
    packer: SegmentPacker


def build_retention(
    base: Base, sessions: SessionParts, writing: WriteParts, cluster: ClusterParts, delivery: DeliveryParts
) -> RetentionParts:
    context, store, clock, events = base.context, base.store, base.clock, base.events
    bounds = RetentionBounds(sessions.journal, cluster.peers, context.exports, base.workers.reader)
    removal = SegmentRemover(
        store, bounds, clock, base.workers.writer, events, sessions_bytes_max=context.retain_for_sessions_bytes_max,
        roll=writing.commit.roll, before_removal=delivery.removal_losses.before_removal,
    )  # fmt: skip
    settings = SpaceSettings(context.free_percent_min, context.wanted_free_percent_min, is_first=context.index == 0)
    disk = DiskSpace(store, bounds, cluster.peers, writing.probe, removal, clock, events, settings)
    packed = packable(store, is_of_cluster=context.term is not None) if context.pack_bytes_per_second else []
    packer = SegmentPacker(
        packed, base.workers, base.timers, base.lifecycle, events, bytes_per_second=context.pack_bytes_per_second,
        has_room=disk.has_room, below=None if writing.replication is None else writing.replication.packable_below,
    )  # fmt: skip
    writing.commit.on_indexed = packer.look
    return RetentionParts(bounds, removal, disk, packer)
