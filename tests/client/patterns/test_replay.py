"""Replays against a broker that does as the test says: their end, losses on the way, starts some time ago."""

from typing import Any

import pytest
import trio

from rumq.client import ConnectionLost, connect_over
from rumq.client.patterns.replay import earlier
from rumq.mqtt.packets import Connack, Disconnect, Publish, Suback, Subscribe
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, Peer, simulated


def record(lsn: int, partition: str = "main/g1/p0") -> Publish:
    pairs = [("rumq-lsn", str(lsn)), ("rumq-partition", partition)]
    return Publish("a", b"%d" % lsn, properties=Properties(user_properties=pairs))


END = Publish("$log/end", b"a")


async def replaying(broker: FakeBroker) -> tuple[Peer, Any]:
    """The replay's connection, subscribed, and what it asked for."""
    peer, connect = await broker.accept()
    assert connect.clean_start and "session_expiry_interval" not in connect.properties
    subscribe = await peer.receive()
    assert isinstance(subscribe, Subscribe)
    await peer.send(Suback(1, (Reason.GRANTED_QOS_0,)))
    return peer, dict(subscribe.properties["user_properties"])


async def collect(broker: FakeBroker, seen: list[bytes], **options: Any) -> None:
    async with connect_over(broker.open_stream, session_expiry=60, keep_alive=0, **options) as client:
        async for message in client.replay("a", "-1h"):
            seen.append(message.payload)


@simulated
async def test_it_ends_where_the_broker_says_so() -> None:
    broker, seen = FakeBroker(), list[bytes]()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def read() -> None:
            await collect(broker, seen)
            nursery.cancel_scope.cancel()

        main, _ = await broker.accept()
        peer, asked = await replaying(broker)
        assert asked == {"rumq-from": "-1h", "rumq-end": "yes"}
        await peer.send(record(0), record(1), END)
        for each in (peer, main):
            assert await each.receive() == Disconnect()
            await each.hang_up()
    assert seen == [b"0", b"1"]


@simulated
async def test_after_a_loss_it_begins_again_and_leaves_out_what_it_has_given() -> None:
    """Of each partition; an hour ago is then an hour and the time since ago."""
    broker, seen = FakeBroker(), list[bytes]()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def read() -> None:
            await collect(broker, seen, reconnect=True)

        await broker.accept()
        peer, _ = await replaying(broker)
        await peer.send(record(0), record(1), record(7, "main/g1/p1"))
        await trio.sleep(100)
        await peer.hang_up()
        peer, asked = await replaying(broker)
        assert 3700 <= int(asked["rumq-from"].removeprefix("-").removesuffix("s")) <= 3703
        await peer.send(record(0), record(1), record(2), record(7, "main/g1/p1"), record(8, "main/g1/p1"), END)
        assert await peer.receive() == Disconnect()
        await peer.hang_up()
        nursery.cancel_scope.cancel()
    assert seen == [b"0", b"1", b"7", b"2", b"8"]


@simulated
async def test_without_reconnect_a_loss_is_raised() -> None:
    broker, seen = FakeBroker(), list[bytes]()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def read() -> None:
            with pytest.raises(ConnectionLost):
                await collect(broker, seen)

        await broker.accept(Connack())
        peer, _ = await replaying(broker)
        await peer.send(record(0))
        await peer.hang_up()
    assert seen == [b"0"]


@pytest.mark.parametrize(
    ("start", "seconds", "later"),
    [
        ("-1h", 0.5, "-1h"), ("-1h", 5, "-3605s"), ("-2d", 1.5, "-172802s"), ("retained@-30s", 10, "retained@-40s"),
        ("earliest", 9, "earliest"), ("1000", 9, "1000"), ("2026-11-20T06:00:00Z", 9, "2026-11-20T06:00:00Z"),
    ],
)  # fmt: skip
def test_a_start_that_is_some_time_ago_stays_where_it_was(start: str, seconds: float, later: str) -> None:
    assert earlier(start, seconds) == later
