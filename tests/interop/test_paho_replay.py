"""Where a replay may begin, as an ordinary client types it: docs/reference/replay.md. With Eclipse Paho, MQTT 3.1.1
and 5."""

from collections.abc import Callable, Iterator

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.broker_process import Address
from tests.interop.paho_peer import VERSIONS, Peer, peer, properties, told

NUMBERS = [b"%d" % n for n in range(8)]
Ask = Callable[[Peer, str, str], list[int]]


def in_the_filter(client: Peer, start: str, topic_filter: str) -> list[int]:
    reasons, _ = client.subscribe(f"$log/{start}/{topic_filter}", 1)
    return [reason.value for reason in reasons]


def as_user_property(client: Peer, start: str, topic_filter: str) -> list[int]:
    start_at = properties("SUBSCRIBE", UserProperty=("rumq-from", start))
    reasons, _ = client.subscribe(topic_filter, options=SubscribeOptions(qos=1), properties=start_at)
    return [reason.value for reason in reasons]


WAYS = pytest.mark.parametrize(
    ("version", "ask"),
    [(mqtt.MQTTv311, in_the_filter), (mqtt.MQTTv5, in_the_filter), (mqtt.MQTTv5, as_user_property)],
    ids=["3.1.1", "5", "rumq-from"],
)


def place(message: mqtt.MQTTMessage) -> dict[str, str]:
    return dict(told(message).UserProperty)


@pytest.fixture
def publisher(log_broker: Address, topic: str) -> Iterator[Peer]:
    """One that has published the numbers 0 to 7."""
    made = Peer(log_broker, mqtt.MQTTv5, f"{topic}-p")
    for payload in NUMBERS:
        made.publish(topic, payload)
    yield made
    made.leave()


@pytest.fixture
def late(log_broker: Address, topic: str, version: int) -> Iterator[Peer]:
    made = Peer(log_broker, version, f"{topic}-s")
    yield made
    made.leave()


@WAYS
@pytest.mark.parametrize(("start", "first"), [("earliest", 0), ("-1h", 0), ("5", 5), ("latest", 8), ("8", 8)])
def test_a_replay_begins_at_its_place(
    publisher: Peer, late: Peer, topic: str, ask: Ask, start: str, first: int
) -> None:
    assert ask(late, start, topic) == [1]
    publisher.publish(topic, b"live")
    assert late.payloads(9 - first) == [*NUMBERS[first:], b"live"]


@WAYS
def test_a_time_begins_at_the_first_message_not_before_it(
    publisher: Peer, late: Peer, log_broker: Address, topic: str, ask: Ask
) -> None:
    with peer(log_broker, mqtt.MQTTv5, f"{topic}-t") as reader:
        in_the_filter(reader, "earliest", topic)
        times = [place(message)["rumq-time"] for message in reader.take(8)]
    assert times == sorted(times)
    assert ask(late, times[3], topic) == [1]
    publisher.publish(topic, b"live")
    assert late.payloads(9 - times.index(times[3])) == [*NUMBERS[times.index(times[3]) :], b"live"]


@WAYS
def test_a_replay_of_a_wildcard_is_in_the_order_of_the_log(publisher: Peer, late: Peer, topic: str, ask: Ask) -> None:
    for n in range(10):
        publisher.publish(f"{topic}/{n % 3}", b"%d" % (8 + n))
    assert ask(late, "earliest", f"{topic}/#") == [1]
    assert late.payloads(18) == [b"%d" % n for n in range(18)]


@WAYS
@pytest.mark.parametrize("start", ["yesterday", "-1", "-1y", "5.0", "1e3", "2026-13-01T00:00:00Z", "Earliest"])
def test_no_such_place_is_refused(late: Peer, topic: str, version: int, ask: Ask, start: str) -> None:
    assert ask(late, start, topic) == [0x8F if version == mqtt.MQTTv5 else 0x80]


@WAYS
def test_an_offset_of_a_wildcard_is_refused(late: Peer, topic: str, version: int, ask: Ask) -> None:
    assert ask(late, "5", f"{topic}/+") == [0x8F if version == mqtt.MQTTv5 else 0x80]


def test_the_reason_string_says_what_is_allowed(log_broker: Address, topic: str) -> None:
    with peer(log_broker, mqtt.MQTTv5, f"{topic}-s", connect={"RequestProblemInformation": 1}) as client:
        _, more = client.subscribe(f"$log/yesterday/{topic}", options=SubscribeOptions(qos=1))
    assert "'yesterday'" in more.ReasonString
    assert all(word in more.ReasonString for word in ("earliest", "latest", "-1h", "offset", "Z"))


@VERSIONS
def test_a_bad_place_beside_a_good_filter_spoils_only_itself(
    publisher: Peer, late: Peer, topic: str, version: int
) -> None:
    """The answers are in the order of the filters. MQTT 5.0, 3.9.3."""
    filters = [(f"$log/never/{topic}", 1), (f"$log/6/{topic}", 1)]
    if version == mqtt.MQTTv5:
        reasons, _ = late.subscribe([(name, SubscribeOptions(qos=qos)) for name, qos in filters])
    else:
        reasons, _ = late.subscribe(filters)
    assert [reason.value for reason in reasons] == [0x8F if version == mqtt.MQTTv5 else 0x80, 1]
    assert late.payloads(2) == NUMBERS[6:]


@pytest.mark.parametrize("version", [mqtt.MQTTv5])
@pytest.mark.parametrize("ask", [in_the_filter, as_user_property])
def test_replayed_and_then_live_messages_say_where_they_stand(
    publisher: Peer, late: Peer, topic: str, ask: Ask
) -> None:
    ask(late, "earliest", topic)
    publisher.publish(topic, b"live", properties=properties("PUBLISH", UserProperty=("own", "1")))
    got = late.take(9)
    assert [place(message)["rumq-offset"] for message in got] == [str(n) for n in range(9)]
    lsns = [int(place(message)["rumq-lsn"]) for message in got]
    assert lsns == sorted(set(lsns))
    assert {place(message)["rumq-partition"] for message in got} == {"main/g1/p0"}
    assert told(got[8]).UserProperty[0] == ("own", "1"), "the publisher's come first"


@pytest.mark.parametrize("version", [mqtt.MQTTv5])
def test_a_live_message_has_only_its_publisher_s_properties(publisher: Peer, late: Peer, topic: str) -> None:
    late.subscribe(topic, options=SubscribeOptions(qos=1))
    publisher.publish(topic, b"live")
    assert not hasattr(told(late.take()[0]), "UserProperty")


@VERSIONS
def test_a_retained_message_comes_once_and_as_one_of_the_log(
    publisher: Peer, late: Peer, topic: str, version: int
) -> None:
    publisher.publish(topic, b"state", retain=True)
    in_the_filter(late, "8", topic)
    publisher.publish(topic, b"live")
    assert [(message.payload, message.retain) for message in late.take(2)] == [
        (b"state", False),
        (b"live", False),
    ]


@VERSIONS
def test_unsubscribe_names_the_filter_as_it_was_subscribed(
    publisher: Peer, late: Peer, topic: str, version: int
) -> None:
    in_the_filter(late, "earliest", topic)
    assert late.payloads(8) == NUMBERS
    late.unsubscribe(f"$log/earliest/{topic}")
    publisher.publish(topic, b"not for it")
    in_the_filter(late, "latest", f"{topic}/other")
    publisher.publish(f"{topic}/other", b"for it")
    assert late.payloads(1) == [b"for it"]


@VERSIONS
def test_a_session_goes_on_with_its_replay(publisher: Peer, log_broker: Address, topic: str, version: int) -> None:
    with peer(log_broker, version, f"{topic}-l", lasting=True) as first:
        in_the_filter(first, "earliest", topic)
        assert first.payloads(8) == NUMBERS
    publisher.publish(topic, b"while away")
    with peer(log_broker, version, f"{topic}-l", lasting=True) as again:
        assert again.payloads(1) == [b"while away"]
