"""A live subscription that asks learns where in the log its messages are. docs/reference/replay.md, "Live messages and
their places"."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.wire import Kind, Packet, Prop
from tests.session.test_who_published import join

ASK = [(Prop.USER_PROPERTY, ("rumq-place", "yes"))]
LASTING = [(Prop.SESSION_EXPIRY, 3600)]


@pytest.fixture(params=[1, 2])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rumqd]:
    broker = Rumqd(tmp_path / "data", "--set", f"shards.count={request.param}")
    broker.start()
    yield broker
    broker.end()


def place(packet: Packet) -> dict[str, str]:
    pairs = [value for kind, value in packet.properties if kind == Prop.USER_PROPERTY]
    return {name: value for name, value in pairs if name.startswith("rumq-")}  # type: ignore[misc]


def publish(broker: Rumqd, count: int, qos: int = 1, topic: str = "a/t") -> None:
    with join(broker, "publisher") as device:
        for number in range(count):
            device.publish(topic, b"%d" % number, qos)


@pytest.mark.parametrize("asked", ["a/t", "a/#", "$share/g/a/t"])
def test_live_messages_have_the_places_that_a_replay_tells(broker: Rumqd, asked: str) -> None:
    with join(broker, "asks") as peer, join(broker, "plain") as plain, join(broker, "past") as past:
        peer.subscribe(asked, qos=1, properties=ASK)
        plain.subscribe("a/t", qos=1)
        publish(broker, 5)
        live = {packet.payload: place(packet) for packet in peer.messages(5)}
        assert [int(live[b"%d" % number]["rumq-offset"]) for number in range(5)] == list(range(5))
        assert all(place(packet) == {} for packet in plain.messages(5))
        past.subscribe("a/t", qos=1, properties=[(Prop.USER_PROPERTY, ("rumq-from", "earliest"))])
        assert {packet.payload: place(packet) for packet in past.messages(5)} == live


def test_a_message_of_qos_0_has_none_for_it_may_come_before_it_is_committed(broker: Rumqd) -> None:
    with join(broker, "asks") as peer:
        peer.subscribe("a/t", qos=1, properties=ASK)
        publish(broker, 1, qos=0)
        publish(broker, 1, qos=1)
        first, second = peer.messages(2)
        assert place(first) == {} and place(second)["rumq-offset"] == "1"


def test_a_lasting_session_keeps_the_option_over_a_kill_of_the_broker(broker: Rumqd) -> None:
    with join(broker, "asks", properties=LASTING) as peer:
        peer.subscribe("a/t", qos=1, properties=ASK)
    publish(broker, 2)
    broker.kill()
    broker.start()
    publish(broker, 1)
    with join(broker, "asks", clean=False, properties=LASTING) as peer:
        assert [place(packet)["rumq-offset"] for packet in peer.messages(3)] == ["0", "1", "2"]


def test_what_was_in_flight_comes_again_with_its_place(broker: Rumqd) -> None:
    with join(broker, "asks", properties=LASTING) as peer:
        peer.subscribe("a/t", qos=1, properties=ASK)
        publish(broker, 1)
        (first,) = [packet for packet in [peer.receive()] if packet.kind == Kind.PUBLISH]
    with join(broker, "asks", clean=False, properties=LASTING) as peer:
        again = peer.receive()
        assert again.kind == Kind.PUBLISH and place(again) == place(first) != {}


def test_any_other_value_is_refused(broker: Rumqd) -> None:
    with join(broker, "asks") as peer:
        wrong = [(Prop.USER_PROPERTY, ("rumq-place", "no"))]
        peer.send(wire.subscribe(1, [("a/t", 1)], properties=wrong))
        assert peer.expect(Kind.SUBACK).codes == [0x8F]
