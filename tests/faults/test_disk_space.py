"""A broker that nobody looks after on a disk that is too small for all it is told: it goes on, the oldest goes.

What lasting sessions and the export have not had stays up to a bound; the operator is told once."""

from collections.abc import Iterator

import pytest

from commitlog import StreamSpec
from commitlog.disk.export_marker import write_exported
from commitlog.testing.simulated_device import taken
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.retention.export_positions import ExportPositions
from tests.commitlog.records import everything
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard

MIB = 1 << 20
RESERVE = MIB // 2
PAYLOAD = bytes(44_000)
SMALL = {
    "free_bytes_min": RESERVE, "free_percent_min": 15, "wanted_free_percent_min": 8,
    "segment_bytes_max": MIB // 4, "yields": True,
}  # fmt: skip
OTHER = StreamSpec("other", ("other/#",), segment_bytes_max=MIB // 4, yields=True)


@pytest.fixture
def shards() -> Iterator[list[Shard]]:
    started: list[Shard] = []
    yield started
    for shard in started:
        shard.end()


def small_disk(shards: list[Shard], size: int = 10 * MIB, **more: object) -> Shard:
    files = SimulatedFiles()
    files.room_bytes = size
    shard = Shard(files, **{**SMALL, **more})  # type: ignore[arg-type]
    shards.append(shard)
    return shard


def publish(shard: Shard, client: Client, count: int, *, topic: str = "t", seconds: float = 1.0) -> int:
    """Messages of 44 KB; returns how many were acknowledged as taken."""
    taken_up = 0
    for number in range(count):
        client.say(wire.publish(topic, PAYLOAD, 1, 1 + number % 60_000))
        shard.after(seconds)
        taken_up += sum(packet.kind is Kind.PUBACK and packet.code == 0 for packet in client.take())
    return taken_up


def free(shard: Shard) -> int:
    return shard.files.free_bytes("data")


def test_ten_times_the_disk_is_published_and_all_of_it_is_taken(shards: list[Shard]) -> None:
    shard = small_disk(shards)
    client = Client(shard, "p", 5)
    assert publish(shard, client, 2000) == 2000
    assert shard.told("log.full", "log.offline", "log.failed") == []
    assert free(shard) > 1.2 * RESERVE
    main = shard.store.partitions[1]
    seen, gaps = everything(main)
    assert gaps == [] and seen[0].lsn == main.first_lsn > 0 and seen[-1].lsn == 1999
    assert sum(len(each.payload) for each in seen) > 5 * MIB, "and the disk is used"
    (low,) = shard.told("disk.low")
    assert "the oldest segments" in low["why"] and "sessions" not in low["why"]
    assert {said["why"] for said in shard.told("log.trimmed") if said["stream"] == "main"} == {"space"}
    assert shard.parts.operation.disk.told.records == main.first_lsn


def test_it_is_told_that_it_is_over(shards: list[Shard]) -> None:
    shard = small_disk(shards)
    client = Client(shard, "p", 5)
    publish(shard, client, 300)
    assert shard.told("disk.eased") == []
    shard.after(90_000)
    shard.after(1)
    (said,) = shard.told("disk.eased")
    assert said["records"] == shard.parts.operation.disk.told.records > 0 and said["segments"] > 0 and said["bytes"] > 0
    publish(shard, client, 300)
    assert len(shard.told("disk.low")) == 2


def test_the_oldest_of_all_streams_goes_first(shards: list[Shard]) -> None:
    shard = small_disk(shards, other=OTHER)
    client = Client(shard, "p", 5)
    publish(shard, client, 60, topic="other/t")
    publish(shard, client, 150)
    other, main = shard.store.partitions[:2]
    assert other.first_lsn > 20 and main.first_lsn == 0
    assert publish(shard, client, 300) == 300


def test_a_stream_that_is_kept_for_ever_keeps_all_and_publishers_are_refused(shards: list[Shard]) -> None:
    shard = small_disk(shards, yields=False)
    client = Client(shard, "p", 5)
    assert publish(shard, client, 300) < 220
    assert shard.store.partitions[1].first_lsn == 0
    assert shard.told("log.full") and not shard.told("disk.low")


def test_what_a_lasting_session_has_not_had_stays_up_to_its_bound(shards: list[Shard]) -> None:
    shard = small_disk(shards, other=OTHER)
    client = Client(shard, "p", 5)
    publish(shard, client, 80, topic="other/t")
    away = Client(shard, "away", 5, properties=[(Prop.SESSION_EXPIRY, 1_000_000)])
    away.say(wire.subscribe(1, [("t", 1)]))
    away.take()
    away.say(wire.disconnect())
    publish(shard, client, 115)
    other, main = shard.store.partitions[:2]
    assert main.first_lsn == 0 and other.first_lsn > 0, "newer ones that nobody waits for go first"
    assert publish(shard, client, 200) == 200
    assert main.first_lsn > 0
    first, second = shard.told("disk.low")
    assert "sessions" not in first["why"] and "sessions" in second["why"]
    back = Client(shard, "away", 5, clean=False, properties=[(Prop.SESSION_EXPIRY, 1_000_000)])
    had = 0
    while packets := [each for each in back.take() if each.kind is Kind.PUBLISH]:
        had += len(packets)
        back.say(*[wire.ack(Kind.PUBACK, each.packet_id) for each in packets])
    rows = shard.parts.delivery.drop_counters.rows("away")
    assert [row.why for row in rows] == ["retention"], "what it did not get is counted"
    assert had > 0


def test_what_is_not_exported_yet_stays_up_to_its_bound(shards: list[Shard]) -> None:
    files = SimulatedFiles()
    shard = small_disk(shards, exports=ExportPositions(files, ["main"], 0))
    shard.parts.operation.removal._bounds._exports._files = shard.files  # type: ignore[union-attr]
    client = Client(shard, "p", 5)
    main = shard.store.partitions[1]
    publish(shard, client, 60)
    write_exported(shard.files, main.directory, 60)
    shard.after(1)
    publish(shard, client, 128)
    assert 0 < main.first_lsn <= 60, "only what is exported has gone"
    assert publish(shard, client, 200) == 200
    assert main.first_lsn > 60 and "the export" in shard.told("disk.low")[-1]["why"]


def test_what_others_fill_takes_no_more_of_the_log_than_to_its_least(shards: list[Shard]) -> None:
    shard = small_disk(shards, size=40 * MIB)
    client = Client(shard, "p", 5)
    publish(shard, client, 50)
    shard.files.room_bytes = taken(shard.files.root) + 1000
    for _ in range(20):
        shard.after(1.0)
    assert shard.told("log.full")
    seen, gaps = everything(shard.store.partitions[1])
    assert gaps == [] and sum(len(each.payload) for each in seen) >= RESERVE // 2


def test_a_segment_to_which_nothing_comes_is_ended_so_that_it_can_go(shards: list[Shard]) -> None:
    shard = Shard(SimulatedFiles(), segment_seconds_max=60, retention_seconds_max=600)
    shards.append(shard)
    client = Client(shard, "p", 5)
    client.say(wire.publish("t", b"alone", 1, 1))
    main = shard.store.partitions[1]
    for _ in range(70):
        shard.after(10.0)
    assert (main.first_lsn, main.next_lsn) == (1, 1)
    assert len(main.segments.files) == 1
    client.say(wire.publish("t", b"another", 1, 2))
    assert [each.payload for each in everything(main)[0]] == [b"another"]


def test_of_a_log_that_was_sealed_by_a_stop_all_may_go(shards: list[Shard]) -> None:
    first = Shard(SimulatedFiles(), segment_seconds_max=60, retention_seconds_max=600)
    client = Client(first, "p", 5)
    client.say(wire.publish("t", b"alone", 1, 1))
    first.store.close()
    first.end()
    shard = Shard(
        first.files.after_kill(),
        segment_seconds_max=60,
        retention_seconds_max=600,
        now_us=first.now_us,
        seed=7,
    )
    shards.append(shard)
    for _ in range(70):
        shard.after(10.0)
    assert shard.store.partitions[1].first_lsn == 1


def test_the_operator_hears_a_day_and_an_hour_before(shards: list[Shard]) -> None:
    shard = small_disk(shards, size=100 * MIB, yields=False)
    client = Client(shard, "p", 5)
    publish(shard, client, 1400, seconds=10.0)
    told = shard.told("disk.filling")
    assert told and told[0]["then"] == "publishers are refused" and len(told) <= 2
    assert 4000 < told[0]["bytes_per_second"] < 6000


def test_the_journal_of_sessions_is_no_larger_than_its_disk_allows(shards: list[Shard]) -> None:
    """Each second with traffic adds a page to it, though only some bytes of records."""
    shard = small_disk(shards, size=12 * MIB)
    client = Client(shard, "p", 5)
    internal = shard.store.internal
    assert internal is not None
    for number in range(3000):
        client.say(wire.publish("t", b"x", 1, 1 + number))
        shard.after(1.0)
    assert internal.segments.bytes < 3 * MIB
