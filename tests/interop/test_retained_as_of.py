"""`$log/retained@<time>/<filter>`: what was retained at a moment, then everything since. docs/reference/replay.md."""

import time
from datetime import UTC, datetime

import pytest

from tests.conformance.peer import Peer
from tests.limits.conftest import Dial, Run, data, join, run

__all__ = ["data", "join", "run"]


def moment() -> str:
    """A time behind all that was acknowledged, and not after anything that follows."""
    us = time.time_ns() // 1000 + 1
    while time.time_ns() // 1000 <= us:
        pass
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat()


def seen(reader: Peer, count: int) -> list[tuple[str, bytes, bool]]:
    return [(m.topic, m.payload, m.retain) for m in reader.messages(count)]


@pytest.mark.parametrize("restarted", [False, True], ids=["from memory", "from disk"])
def test_a_snapshot_and_then_every_message_since(run: Run, join: Dial, restarted: bool) -> None:
    broker = run()
    publisher = join(broker, "p")
    for topic, payload in [("p/1", b"a"), ("p/2", b"b"), ("p/3", b"c"), ("q/1", b"no")]:
        publisher.publish(topic, payload, qos=1, retain=True)
    publisher.publish("p/1", b"not retained", qos=1)
    publisher.publish("p/2", b"", qos=1, retain=True)
    then = moment()
    publisher.publish("p/1", b"a2", qos=1, retain=True)
    publisher.publish("p/4", b"d", qos=1, retain=True)
    publisher.publish("p/3", b"", qos=1, retain=True)
    if restarted:
        broker.kill()
        broker.start()
        publisher = join(broker, "p")
    reader = join(broker, "r")
    assert reader.subscribe(f"$log/retained@{then}/p/+", qos=1) == [1]
    assert sorted(seen(reader, 2)) == [("p/1", b"a", True), ("p/3", b"c", True)]
    assert seen(reader, 3) == [("p/1", b"a2", False), ("p/4", b"d", False), ("p/3", b"", False)]
    publisher.publish("p/9", b"live", qos=1)
    assert seen(reader, 1) == [("p/9", b"live", False)]
    reader.expect_silence()


def test_only_a_time_can_be_asked_for(run: Run, join: Dial) -> None:
    reader = join(run(), "r")
    assert reader.subscribe("$log/retained@1000/t", "$log/retained@earliest/t", "$log/retained@/t") == [0x8F] * 3
    assert reader.subscribe("$log/retained@-1h/t") == [0]
