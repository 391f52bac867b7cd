"""The row of a partition in the answers of the admin interface, as the shard that owns it sees it."""

from __future__ import annotations

from commitlog import Partition
from rumq.admin import rows as r


def partition_row(partition: Partition, shard: int) -> r.PartitionRow:
    files = partition.segments.files
    return r.PartitionRow(
        stream=partition.stream, partition=partition.number, shard=shard, durability=partition.spec.durability,
        first_lsn=partition.first_lsn, next_lsn=partition.next_lsn, committed_lsn=partition.committed_lsn,
        topics=len(partition.topic_names), topics_max=partition.spec.topics_max, segments=len(files),
        bytes=partition.segments.bytes, pending_bytes=partition.pending_bytes,
        first_time_us=next((s.first_ts for s in files if s.first_ts), 0), last_time_us=partition.last_ts,
        offline=str(partition.offline) if partition.offline else None,
    )  # fmt: skip
