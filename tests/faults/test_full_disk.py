"""A disk that is full, nearly full, failing, read-only or gone: publishers are told, nothing acknowledged is lost, and
work goes on by itself. docs/decisions/0007-a-full-disk.md."""

import errno
from collections.abc import Iterator

import pytest

from commitlog.disk.os_errors import at_start
from commitlog.testing.simulated_device import taken
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import everything
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard

MIB = 1 << 20
QUOTA_EXCEEDED, IMPLEMENTATION_SPECIFIC = 0x97, 0x83


@pytest.fixture
def shards() -> Iterator[list[Shard]]:
    started: list[Shard] = []
    yield started
    for shard in started:
        shard.end()


def full(shard: Shard, *, free: int = 0) -> None:
    """Other files take all the room but `free` bytes."""
    shard.files.room_bytes = taken(shard.files.root) + free
    assert shard.files.free_bytes("data") == free


def answers(client: Client) -> list[tuple[Kind, int, int]]:
    return [(packet.kind, packet.packet_id, packet.code) for packet in client.take()]


def payloads(shard: Shard, index: int = 1) -> list[bytes]:
    return [seen.payload for seen in everything(shard.store.partitions[index])[0]]


def test_below_the_reserve_mqtt_5_publishers_are_refused_and_go_on_when_there_is_room(
    shards: list[Shard],
) -> None:
    shard = Shard(SimulatedFiles(), free_bytes_min=MIB)
    shards.append(shard)
    client = Client(shard, "p", 5)
    client.say(wire.publish("t", b"one", 1, 1), wire.publish("t", b"two", 2, 2))
    assert answers(client) == [(Kind.PUBACK, 1, 0), (Kind.PUBREC, 2, 0)]
    full(shard, free=MIB - 4096)
    shard.after(1.0)
    (said,) = shard.told("log.full")
    assert said["free_bytes"] < said["free_bytes_min"] == MIB
    client.say(wire.publish("t", b"three", 1, 3), wire.publish("other/t", b"four", 2, 4), wire.publish("t", b"five"))
    assert answers(client) == [(Kind.PUBACK, 3, QUOTA_EXCEEDED), (Kind.PUBREC, 4, QUOTA_EXCEEDED)]
    client.say(wire.publish("t", b"two", 2, 2, dup=True), wire.ack(Kind.PUBREL, 2))
    assert answers(client) == [(Kind.PUBREC, 2, 0), (Kind.PUBCOMP, 2, 0)], "what it has taken it has taken"
    assert shard.store.internal is not None
    before = shard.store.internal.committed_lsn
    lasting = Client(shard, "lasting", 5, properties=[(Prop.SESSION_EXPIRY, 60)])
    lasting.say(wire.subscribe(1, [("t", 1)]))
    assert [packet.kind for packet in lasting.take()] == [Kind.SUBACK], "clients come and subscribe all the same"
    shard.after(1.0)
    assert shard.store.internal.committed_lsn > before, "and the broker's own records are written"
    full(shard, free=2 * MIB)
    shard.after(1.0)
    (said,) = shard.told("log.freed")
    assert said["free_bytes"] > MIB and said["refused"] == 3
    client.say(wire.publish("t", b"six", 1, 6), wire.publish("other/t", b"seven", 2, 4))
    assert answers(client) == [(Kind.PUBACK, 6, 0), (Kind.PUBREC, 4, 0)]
    assert payloads(shard) == [b"one", b"two", b"six"]
    assert [packet.payload for packet in lasting.take()] == [b"six"]


@pytest.mark.parametrize("version", [3, 4])
def test_an_older_client_gets_no_acknowledgement_and_is_sent_away_when_there_is_room(
    shards: list[Shard], version: int
) -> None:
    shard = Shard(SimulatedFiles(), free_bytes_min=MIB)
    shards.append(shard)
    client, quiet = Client(shard, "p", version), Client(shard, "quiet", version)
    full(shard)
    shard.after(1.0)
    client.say(
        wire.publish("t", b"one", 1, 1, version=version),
        wire.publish("t", b"two", 2, 2, version=version),
        wire.publish("t", b"nobody waits", version=version),
    )
    client.say(wire.frame(0xC0))
    assert [packet.kind for packet in client.take()] == [Kind.PINGRESP], "it is served, but not acknowledged"
    full(shard, free=2 * MIB)
    shard.after(1.0)
    assert client.closed and not quiet.closed
    again = Client(shard, "p", version)
    again.say(
        wire.publish("t", b"one", 1, 1, dup=True, version=version),
        wire.publish("t", b"two", 2, 2, dup=True, version=version),
    )
    assert answers(again) == [(Kind.PUBACK, 1, 0), (Kind.PUBREC, 2, 0)]
    assert payloads(shard) == [b"one", b"two"]


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.ENOSPC, QUOTA_EXCEEDED, "make room"),
        (errno.EIO, IMPLEMENTATION_SPECIFIC, "the device fails"),
        (errno.EROFS, IMPLEMENTATION_SPECIFIC, "read-only"),
        (errno.ENOENT, IMPLEMENTATION_SPECIFIC, "vanished"),
        (errno.EACCES, IMPLEMENTATION_SPECIFIC, "rights back"),
    ],
)
def test_a_partition_whose_disk_fails_goes_offline_and_the_others_go_on(
    shards: list[Shard], number: int, code: int, words: str
) -> None:
    shard = Shard(SimulatedFiles())
    shards.append(shard)
    client = Client(shard, "p", 5)
    client.say(wire.publish("t", b"one", 1, 1))
    shard.files.broken_under = "data/main/"
    shard.files.broken = number
    client.say(wire.publish("t", b"two", 1, 2))
    other = Client(shard, "o", 5)
    other.say(wire.publish("other/t", b"x", 1, 3))
    assert answers(client) == [(Kind.PUBACK, 1, 0)], "the group that failed is not acknowledged"
    assert answers(other) == [(Kind.PUBACK, 3, 0)], "what the other partition has is"
    (said,) = shard.told("log.offline")
    assert said["stream"] == "main" and words in said["why"]
    other.say(wire.publish("t", b"three", 1, 4))
    assert answers(other) == [(Kind.PUBACK, 4, code)]
    shard.after(1.0)
    shard.after(1.0)
    assert len(shard.told("log.offline")) == 1, "told once, however often it is tried"
    shard.files.broken = None
    shard.after(1.0)
    assert answers(client) == [(Kind.PUBACK, 2, 0)], "by itself, and only now"
    assert shard.told("log.online") == [{"stream": "main", "partition": 0, "refused": 1}]
    other.say(wire.publish("t", b"four", 1, 5))
    assert answers(other) == [(Kind.PUBACK, 5, 0)]
    assert payloads(shard) == [b"one", b"two", b"four"]


def test_a_data_directory_that_was_moved_away_or_replaced_takes_nothing(shards: list[Shard]) -> None:
    shard = Shard(SimulatedFiles())
    shards.append(shard)
    client = Client(shard, "p", 5)
    directory = shard.files.root.names.pop("data")
    shard.after(1.0)
    client.say(wire.publish("t", b"one", 1, 1))
    assert answers(client) == [(Kind.PUBACK, 1, IMPLEMENTATION_SPECIFIC)]
    assert "vanished" in shard.told("log.unreachable")[0]["why"]
    shard.files.make_directory("data")
    shard.files.put("data/LOCK", b"")
    shard.after(1.0)
    assert shard.told("log.reachable") == [], "another directory in its place is not it"
    shard.files.root.names["data"] = directory
    shard.after(1.0)
    assert shard.told("log.reachable") == [{"refused": 1}]
    client.say(wire.publish("t", b"two", 1, 2))
    assert answers(client) == [(Kind.PUBACK, 2, 0)]


def test_with_no_byte_free_retention_makes_room_and_work_goes_on(shards: list[Shard]) -> None:
    """Old segments go although nothing can be written first: their indexes give the room for that."""
    shard = Shard(SimulatedFiles(), segment_bytes_max=20_000, retention_seconds_max=60)
    shards.append(shard)
    client = Client(shard, "p", 5)
    for number in range(1, 40):
        client.say(wire.publish(f"t/{number % 5}", b"%d" % number * 500, 1, number))
        shard.after(0.1)
    assert len(answers(client)) == 39
    assert len(shard.store.partitions[1].segments.files) > 3
    full(shard)
    client.say(wire.publish("t/0", bytes(9000), 1, 100))
    assert answers(client) == []
    first = shard.store.partitions[1].first_lsn
    shard.after(61.0)
    shard.after(2.0)
    assert shard.store.partitions[1].first_lsn > first
    assert answers(client) == [(Kind.PUBACK, 100, 0)], "the room was enough for what waited"
    assert everything(shard.store.partitions[1])[1] == []


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "full"),
        (errno.EDQUOT, "full"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "may not write"),
        (errno.ENOENT, "vanished"),
        (errno.ENOTDIR, "not a directory"),
        (errno.EIO, "repair"),
    ],
)
def test_a_start_says_which_it_is_and_what_to_do(number: int, words: str) -> None:
    said = at_start(OSError(number, "as the system says"))
    assert words in said and "--data" in said
    assert len({at_start(OSError(n)) for n in (errno.EROFS, errno.ENOENT, errno.ENOSPC)}) == 3
