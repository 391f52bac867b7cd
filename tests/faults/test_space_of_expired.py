"""What frees space on the disk: retention does, by whole segments; the expiry of a message does not."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import everything
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import LASTING

MESSAGES, PAYLOAD_BYTES = 100, 1000
EXPIRY_SECONDS, SEGMENT_SECONDS, KEPT_SECONDS = 5, 60, 600
DIRECTORY = "data/main/g1/p0"


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(
        SimulatedFiles(), segment_bytes_max=20_000, segment_seconds_max=SEGMENT_SECONDS,
        retention_seconds_max=KEPT_SECONDS,
    )  # fmt: skip
    yield made
    made.end()


def on_disk(shard: Shard) -> int:
    """Bytes of all files of the partition."""
    return sum(shard.files.size(f"{DIRECTORY}/{name}") for name in shard.files.names(DIRECTORY))


def publish(shard: Shard, *, expiry: int) -> None:
    client = Client(shard, "p", 5)
    for number in range(MESSAGES):
        payload = b"%d" % number + bytes(PAYLOAD_BYTES)
        client.say(wire.publish("t", payload, 1, 1 + number, properties=[(Prop.MESSAGE_EXPIRY, expiry)]))


def test_expired_messages_are_delivered_to_nobody_and_stay_on_the_disk(shard: Shard) -> None:
    """A record is a part of a file that is never changed: it goes with its segment."""
    away = Client(shard, "away", 5, **LASTING)
    away.say(wire.subscribe(1, [("t", 1)]))
    away.link.lost("the network")
    publish(shard, expiry=EXPIRY_SECONDS)
    before = on_disk(shard)
    assert before > MESSAGES * PAYLOAD_BYTES
    shard.after(EXPIRY_SECONDS + 1.0)
    back = Client(shard, "away", 5, **LASTING)
    shard.settle()
    assert [packet for packet in back.take() if packet.kind == Kind.PUBLISH] == []
    assert on_disk(shard) >= before
    assert len(everything(shard.store.partitions[1])[0]) == MESSAGES, "Spark and the lake have them"


@pytest.mark.parametrize("expiry", [EXPIRY_SECONDS, 86_400])
def test_retention_frees_their_space_whatever_their_expiry_was(shard: Shard, expiry: int) -> None:
    publish(shard, expiry=expiry)
    before, seen = on_disk(shard), []
    for _ in range((KEPT_SECONDS + 2 * SEGMENT_SECONDS) // 10):
        shard.after(10.0)
        seen.append(on_disk(shard))
    kept = KEPT_SECONDS // 10 - 1
    assert min(seen[:kept]) >= before - 4096, "nothing goes before its age"
    assert seen[-1] < before // 10, (before, seen)
    assert everything(shard.store.partitions[1])[0] == []


def test_of_a_log_with_a_bound_in_bytes_the_oldest_segments_go_at_once() -> None:
    shard = Shard(SimulatedFiles(), segment_bytes_max=20_000, retention_bytes_max=60_000)
    try:
        largest = 0
        for _ in range(3):
            publish(shard, expiry=86_400)
            shard.after(20.0)
            largest = max(largest, on_disk(shard))
        assert largest < 60_000 + 3 * 20_000, "a bound, the segment that is written, and indexes"
        payloads = [seen.payload for seen in everything(shard.store.partitions[1])[0]]
        assert payloads and payloads[-1].startswith(b"%d" % (MESSAGES - 1)), "the newest are there"
    finally:
        shard.end()
