"""PUBLISH where the kernel needs help: new topics and refusals. MQTT 5.0, 3.3.4."""

import pytest

from rumq.auth.rules import parse
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.reasons import Reason
from rumq.session.connection.broker_port import PublishRefusal
from rumq.session.flow_control.listener_policy import ListenerPolicy
from tests.conformance.wire import Kind
from tests.session.broker import Broker, connected


def publish(topic: str, qos: int = 1) -> p.Publish:
    return p.Publish(topic, b"x", qos, False, False, 1 if qos else None)


def test_a_topic_gets_its_number_with_its_first_message() -> None:
    broker = Broker()
    connected(broker).say(publish("a"), publish("b"), publish("a"))
    assert broker.topics == {b"a": 0, b"b": 1} and broker.batches[0].count == 3


@pytest.mark.parametrize(("qos", "answer"), [(0, []), (1, [Kind.PUBACK]), (2, [Kind.PUBREC])])
def test_a_topic_that_there_is_no_room_for_is_refused_with_a_reason(qos: int, answer: list[Kind]) -> None:
    broker = Broker()
    broker.topics_max = 0
    wire = connected(broker)
    wire.say(publish("a", qos))
    heard = wire.hears()
    assert [each.kind for each in heard] == answer and broker.batches[0].count == 0
    assert all(each.code == Reason.QUOTA_EXCEEDED for each in heard)


def test_before_mqtt_5_only_an_end_says_that_a_message_was_not_taken() -> None:
    """3.1.1, 3.3.5."""
    broker = Broker()
    broker.topics_max = 0
    wire = connected(broker, version=4)
    wire.say(publish("a"))
    assert wire.closed and not wire.hears()


def test_a_reserved_topic_is_acknowledged_before_mqtt_5_and_refused_since() -> None:
    """3.1.1, 3.3.5-2."""
    for version, code in ((4, Reason.SUCCESS), (5, Reason.NOT_AUTHORIZED)):
        wire = connected(Broker(), version=version)
        wire.say(publish("$SYS/x"))
        assert [each.code for each in wire.hears()] == [code]


@pytest.mark.parametrize("version", [4, 5])
def test_a_partition_that_takes_none_refuses_or_leaves_unanswered(version: int) -> None:
    broker = Broker()
    broker.batches[0].refusing = True
    broker.refusal = PublishRefusal(Reason.QUOTA_EXCEEDED, "the disk is full")
    wire = connected(broker, version=version)
    wire.say(publish("a"))
    assert [each.code for each in wire.hears()] == ([Reason.QUOTA_EXCEEDED] if version == 5 else [])
    assert not wire.closed


@pytest.mark.parametrize("wait", [0.0, 0.5])
def test_who_creates_a_topic_that_is_not_matched_yet_waits_and_what_came_before_it_is_taken(
    wait: float,
) -> None:
    broker = Broker()
    wire = connected(broker)
    packets = [encode(publish(topic), 5) for topic in ("a", "b", "c")]
    broker.topic_waits = [None, wait, wait, None, None]
    assert wire.say(*packets) == len(packets[0]) and wire.paused
    for _ in range(2):
        if wait:
            ((seconds, resume),) = broker.timers
            assert seconds == wait and not broker.next_turns
        else:
            (resume,) = broker.next_turns
            assert not broker.timers
        broker.timers, broker.next_turns = [], []
        resume()
        assert not wire.paused
        wire.say(*packets[1:])
    assert not wire.paused and list(broker.topics) == [b"a", b"b", b"c"] and broker.batches[0].count == 3
    assert len(wire.hears()) == 3


def test_a_client_that_may_not_publish_to_a_topic_has_nothing_matched() -> None:
    broker = Broker()
    broker.topic_waits = [1.0]
    rules = parse('[[rule]]\nallow = ["publish"]\ntopics = ["mine/#"]\n', "rules.toml")
    wire = connected(broker, policy=ListenerPolicy(rules=rules))
    wire.say(publish("other"))
    assert broker.topic_waits == [1.0] and not wire.paused
    assert [each.code for each in wire.hears()] == [Reason.NOT_AUTHORIZED]
