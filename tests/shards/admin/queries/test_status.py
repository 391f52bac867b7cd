"""The status of a shard: clients, partitions, disk and memory."""

from rumq.shards.admin.queries.status import memory_bytes
from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import ask_raw, away


def test_the_status_has_clients_sessions_and_where_each_partition_stands(shard: Shard) -> None:
    away(shard, "t")
    Client(shard, "p", 5).say(wire.publish("t", b"x", 1, 1), wire.publish("u", b"x", 1, 2, retain=True))
    shard.parts.delivery.drop_counters.count("expired", "c", "t", 5)
    status = ask_raw(shard, "status")
    assert (status["connected"], status["sessions"], status["retained"], status["undelivered"]) == (
        1,
        2,
        1,
        5,
    )
    assert status["log_bytes"] == sum(p.segments.bytes for p in shard.store.own)
    _, main = status["partitions"]
    assert (main.stream, main.partition, main.durability, main.topics) == ("main", 0, "disk", 2)
    assert (main.first_lsn, main.next_lsn, main.committed_lsn, main.offline) == (0, 2, 2, None)


def test_shard_0_tells_of_the_broker_and_when_its_disk_will_be_full(shard: Shard) -> None:
    shard.parts.operation.admin.status.about = {"version": "1", "shards": 1}
    before = ask_raw(shard, "status")
    assert (before["version"], before["uptime_seconds"]) == ("1", 0.0)
    shard.after(61.25)
    status = ask_raw(shard, "status")
    assert status["uptime_seconds"] == 61.2 and status["disk_is_full"] == 0
    assert status["disk"]["total_bytes"] == 1 << 50 and status["disk"]["full_in_seconds"] is None
    assert status["disk"]["then"] == "publishers are refused", "no stream yields"


def test_a_full_disk_and_a_partition_that_is_offline_are_in_the_status(shard: Shard) -> None:
    shard.parts.writing.admission.free_bytes_min = 1
    shard.parts.writing.admission.free(0)
    partition = shard.store.own[0]
    partition.offline = OSError(5, "why")  # type: ignore[assignment]
    status = ask_raw(shard, "status")
    assert status["disk_is_full"] == 1
    assert [each.offline for each in status["partitions"]] == ["[Errno 5] why", None]
    partition.offline = None


def test_the_memory_of_this_process_is_more_than_nothing() -> None:
    assert 1 << 20 < memory_bytes() < 1 << 40 and memory_bytes() % 1024 == 0
