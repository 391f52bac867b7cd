"""A connection that asks to be sent nothing subscribes, and all that its session has comes on the next one.

docs/decisions/0074-a-bridge-raises-qos-1.md: so does a bridge, before it can relay anything."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import LASTING, messages, payloads, session_of

NO_LOCAL = 4


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles(), segment_bytes_max=1 << 16)
    yield made
    made.end()


def bridge(shard: Shard, *, holds: bool = False) -> Client:
    """Its connection, with room for two messages at a time."""
    asked = [(Prop.USER_PROPERTY, ("rumq-hold", ""))] if holds else []
    return Client(shard, "r", 5, clean=False, properties=[*LASTING["properties"], (Prop.RECEIVE_MAXIMUM, 2), *asked])


def subscribe_held(shard: Shard, options: int = 1) -> None:
    """And leave, as a bridge does before it can relay anything."""
    held = bridge(shard, holds=True)
    held.say(wire.subscribe(1, [("t/#", options)]))
    assert [each.kind for each in held.take()] == [Kind.SUBACK]
    publish(shard, "t/live", b"live")
    held.say(wire.ack(Kind.PUBREC, 9))
    assert [each.kind for each in held.take()] == [Kind.PUBREL], "it is answered all the same"
    held.link.lost("the network")


def publish(shard: Shard, topic: str, payload: bytes, *, retain: bool = False, qos: int = 1) -> None:
    Client(shard, "p", 5).say(wire.publish(topic, payload, qos, 1 if qos else 0, retain=retain))


def all_payloads(client: Client) -> list[bytes]:
    """Each is acknowledged."""
    found = []
    while some := messages(client):
        found += [each.payload for each in some]
        client.say(*[wire.ack(Kind.PUBACK, each.packet_id) for each in some])
    return found


@pytest.mark.parametrize("options", [1, 1 | NO_LOCAL])
def test_nothing_is_sent_until_a_connection_that_takes_it(shard: Shard, options: int) -> None:
    """More retained messages than are sent at once, too: none goes with the connection that asked for them."""
    for number in range(5):
        publish(shard, f"t/{number}", b"%d" % number, retain=True)
    subscribe_held(shard, options)
    window = session_of(shard, "r").window
    assert window is None or not window.in_flight
    assert sorted(all_payloads(bridge(shard))) == [b"0", b"1", b"2", b"3", b"4", b"live"]


def test_what_is_retained_meanwhile_comes_once(shard: Shard) -> None:
    """As it was published, in its order, and not as a retained message too; also if it subscribes again meanwhile."""
    publish(shard, "t/a", b"old", retain=True)
    publish(shard, "t/b", b"stays", retain=True)
    subscribe_held(shard)
    publish(shard, "t/a", b"new", retain=True)
    subscribe_held(shard)
    assert all_payloads(bridge(shard)) == [b"stays", b"live", b"new", b"live"]


def test_a_subscription_that_goes_takes_its_retained_messages_along(shard: Shard) -> None:
    publish(shard, "t/a", b"a", retain=True)
    subscribe_held(shard)
    held = bridge(shard, holds=True)
    held.say(wire.unsubscribe(2, ["t/#"]))
    held.link.lost("the network")
    assert payloads(bridge(shard)) == []


def test_what_is_retained_meanwhile_comes_whatever_its_qos(shard: Shard) -> None:
    """Of QoS 0 too: it is in the log, behind where the session stands."""
    subscribe_held(shard)
    publish(shard, "t/a", b"new", retain=True, qos=0)
    subscribe_held(shard)
    assert all_payloads(bridge(shard)) == [b"live", b"new", b"live"]


def test_what_is_retained_meanwhile_comes_though_the_log_does_not_have_it_any_more(shard: Shard) -> None:
    """Retention took it from the log, where it waited for the session; as a retained message it is still there."""
    subscribe_held(shard)
    publish(shard, "t/a", b"state", retain=True)
    for _ in range(16):
        publish(shard, "fill", b"x" * 20_000)
    publish(shard, "t/b", b"later", retain=True)
    main = shard.store.partitions[1]
    shard.after(1.0)
    removal = main.take_oldest(len(main.sealed(None)))  # type: ignore[attr-defined]
    assert removal is not None
    shard.parts.operation.removal.carry_out(main, removal, "retention")  # type: ignore[arg-type]
    shard.settle()
    assert main.first_lsn > 1
    assert sorted(all_payloads(bridge(shard))) == [b"later", b"state"]
