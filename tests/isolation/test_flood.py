"""Who floods a partition waits for it: what the others send is never behind more than a few ms of a disk."""

from collections.abc import Iterator

import pytest

from rumq.session.protocol.connected import BULK_BYTES
from rumq.shards.write_path.bulk_allowance import ALLOWED_MAX
from tests.conformance import wire
from tests.conformance.wire import Kind
from tests.isolation.turns import Connection, Turned, turned

PIECE = b"".join(wire.publish("flood/topic", bytes(1000)) for _ in range(250))


@pytest.fixture
def shard() -> Iterator[Turned]:
    made = turned()
    yield made
    made.end()


def pending(shard: Turned) -> int:
    return sum(partition.pending_bytes for partition in shard.store.partitions)


def crowd(shard: Turned, flooder: Connection) -> None:
    """Publish until the partition is crowded, with the flooder's share of a turn in each turn; somebody waits there."""
    Connection(shard, "waits").say(wire.publish("flood/topic", b"first", 1, 1))
    for _ in range(2 * ALLOWED_MAX // len(PIECE)):
        flooder.send(PIECE)
        shard.parts.turn.begin_turn()
        shard.parts.turn.end_turn()  # no thread's end is told: nothing is written yet, as far as the loop knows
    assert len(PIECE) > BULK_BYTES


def test_a_flooder_is_held_as_soon_as_its_partition_is_crowded(shard: Turned) -> None:
    flooder = Connection(shard, "flooder")
    crowd(shard, flooder)
    assert flooder.is_held and flooder.has_unread
    assert ALLOWED_MAX < pending(shard) < ALLOWED_MAX + 3 * len(PIECE), "however much it has to say"


def test_where_nobody_waits_a_flood_is_written_as_it_comes(shard: Turned) -> None:
    flooder = Connection(shard, "flooder")
    for _ in range(2 * ALLOWED_MAX // len(PIECE)):
        flooder.send(PIECE)
        shard.parts.turn.begin_turn()
        shard.parts.turn.end_turn()
    assert not flooder.is_held and not flooder.has_unread


def test_who_sends_little_is_not_held_with_it(shard: Turned) -> None:
    flooder, modest = Connection(shard, "flooder"), Connection(shard, "modest")
    crowd(shard, flooder)
    modest.send(wire.publish("flood/topic", b"little", 1, 5))
    assert not modest.is_held
    shard.settle()
    assert [packet.kind for packet in modest.take()] == [Kind.PUBACK]


def test_a_flooder_goes_on_when_its_partition_has_caught_up(shard: Turned) -> None:
    flooder, reader = Connection(shard, "flooder"), Connection(shard, "reader")
    crowd(shard, flooder)
    for _ in range(100):
        if not flooder.is_held:
            break
        if shard.parts.writing.workers.writer.pending:
            shard.wait()
        shard.monotonic += 0.001  # it rests, too, for somebody has sent a little
        shard.turn()
    shard.settle()
    assert not flooder.is_held and not flooder.has_unread
    reader.say(wire.subscribe(1, [("$log/earliest/flood/#", 0)]))
    heard = 0
    for _ in range(1000):
        heard += sum(packet.kind == Kind.PUBLISH for packet in reader.take())
        reader.room, reader.refused = 1 << 20, False
        shard.parts.turn.drained(reader)
        shard.settle()
    assert heard == 1 + 250 * (2 * ALLOWED_MAX // len(PIECE)), "nothing is lost on the way"
