"""Topics and filters that no message could go by: `$log/` in a shared filter or in PUBLISH, too many levels.

They are refused one by one, with the standard's reason, and cost nothing else of the connection."""

from collections.abc import Iterator

import pytest

from tests.broker_process import Event, Rumqd
from tests.conformance import wire
from tests.conformance.peer import Address, Peer
from tests.conformance.wire import Prop, Will

LEVELS = 8
DEEP = "a/" * LEVELS + "b"
UNNAMED = ["$log/earliest/x", "$log/x", "$share/g/x"]
FILTERS = [
    "$share/g/$log/earliest/x", "$share/g/$log/-1h/#", "$log/earliest/$log/earliest/x", "$share/g/$share/h/x", DEEP,
    f"$share/g/{DEEP}", f"$log/earliest/{DEEP}", "a/" * 3000,
]  # fmt: skip


@pytest.fixture(scope="module", params=[1, 2])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rumqd]:
    folder = tmp_path_factory.mktemp("broker")
    config = folder / "config.toml"
    listener = '[[listener]]\nhost = "127.0.0.1"\nport = 0\n'
    config.write_text(
        f'shards.count = {request.param}\nmqtt.topic_levels_max = {LEVELS}\n{listener}{listener}mount_point = "m/"\n'
    )
    broker = Rumqd(folder / "data", "--config", str(config))
    broker.start()
    broker.event("listener.bound", number=2)
    yield broker
    broker.end()


@pytest.fixture(params=["plain", "mounted"])
def address(request: pytest.FixtureRequest, broker: Rumqd) -> Address:
    plain, mounted = (bound["port"] for bound in broker.named("listener.bound"))
    return "127.0.0.1", plain if request.param == "plain" else mounted


@pytest.fixture(params=[4, 5], ids=["3.1.1", "5"])
def peer(request: pytest.FixtureRequest, address: Address) -> Iterator[Peer]:
    with Peer(address, request.param) as peer:
        assert peer.connect(f"client-{request.param}").code == 0
        yield peer


def told_of(broker: Rumqd, peer: Peer, name: str) -> Event:
    """The first event of that name about this connection."""
    host, port = peer.socket.getsockname()
    return broker.heard(lambda event: event["event"] == name and event.get("peer") == f"{host}:{port}")


@pytest.mark.parametrize("topic_filter", FILTERS)
def test_a_filter_that_could_bring_nothing_is_refused_alone(peer: Peer, topic_filter: str) -> None:
    refused = 0x8F if peer.version == 5 else 0x80
    assert peer.subscribe(topic_filter, "good", qos=1) == [refused, 1]
    peer.publish("good", b"1", 1)
    assert peer.payloads(1) == [b"1"]
    if peer.version == 5:
        assert peer.unsubscribe(topic_filter, "good") == [0x11, 0]


def test_a_long_subscribe_is_answered_likewise(peer: Peer) -> None:
    """More than is served at once."""
    refused = 0x8F if peer.version == 5 else 0x80
    filters = [name for number in range(100) for name in (f"x/{number}", f"{DEEP}/{number}")]
    assert peer.subscribe(*filters) == [0, refused] * 100


@pytest.mark.parametrize("topic", UNNAMED)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_that_no_filter_could_name_is_refused_alone(broker: Rumqd, peer: Peer, topic: str, qos: int) -> None:
    peer.subscribe("#", "+/#", "m/#")
    assert peer.publish(topic, b"lost", qos) == {0: None}.get(qos, 0x90 if peer.version == 5 else 0)
    assert told_of(broker, peer, "publish.refused")["refused"] == 1
    peer.publish("good", b"1", 1)
    assert {message.payload for message in peer.pending()} == {b"1"}


@pytest.mark.parametrize("qos", [1, 2])
def test_too_many_levels_are_told_in_the_acknowledgement(address: Address, qos: int) -> None:
    with Peer(address) as peer:
        peer.connect("deep")
        assert peer.publish(DEEP, b"no", qos) == 0x90
        assert peer.publish(DEEP, b"no", qos, properties=[(Prop.TOPIC_ALIAS, 1)]) == 0x90
        assert peer.publish("", b"no", qos, properties=[(Prop.TOPIC_ALIAS, 1)]) == 0x90
        assert peer.publish("good", b"yes", qos) < 0x80  # type: ignore[operator]


def test_too_many_levels_at_qos_0_are_dropped_and_counted(broker: Rumqd, peer: Peer) -> None:
    peer.publish(DEEP, b"no")
    told = told_of(broker, peer, "publish.refused")
    assert told["topic"].endswith(DEEP) and "levels" in told["why"]
    peer.expect_silence()


@pytest.mark.parametrize("qos", [1, 2])
def test_an_older_client_is_not_told_that_a_message_was_taken_that_was_not(address: Address, qos: int) -> None:
    with Peer(address, 4) as peer:
        peer.connect("deep-4")
        peer.send(wire.publish(DEEP, b"no", qos, 1, version=4))
        peer.expect_refusal()


@pytest.mark.parametrize("topic", ["a/#", "a/+"])
def test_what_is_malformed_ends_the_connection_as_before(address: Address, topic: str) -> None:
    with Peer(address) as peer:
        peer.connect("malformed")
        peer.send(wire.publish(topic, b"no", 1, 1))
        peer.expect_refusal(0x81, 0x82, 0x90)


@pytest.mark.parametrize("topic", UNNAMED)
def test_a_will_that_no_filter_could_name_is_left_out(broker: Rumqd, topic: str) -> None:
    """Its client comes in all the same, as with one that is not permitted."""
    with Peer(broker.address) as dying:
        assert dying.connect("dying", will=Will(topic)).code == 0
        assert told_of(broker, dying, "permission.refused")["action"] == "will"
