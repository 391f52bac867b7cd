"""Fan-out to many groups at once: frames as they are stored where a group takes them so, and nothing else differs."""

from collections.abc import Iterator
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from router import delivery
from router.matching.scatter import GROUPS_MIN, Part
from rumq.shards.delivery import fan_out
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import LASTING, counted, drain, messages, payloads, subscribed

GROUPS = GROUPS_MIN + 5  # of one topic each
TOPICS = [f"t/{n}" for n in range(GROUPS)]
RETAIN_AS_PUBLISHED, NO_LOCAL = 8, 4
TEXT = [(Prop.CONTENT_TYPE, "text")]


class Sight:
    """parts: that were sorted to groups; as_stored: of each that was delivered, whether its frames went out so"""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.as_stored: list[bool] = []

    def clear(self) -> None:
        self.parts.clear()
        self.as_stored.clear()


@pytest.fixture
def sight(monkeypatch: pytest.MonkeyPatch) -> Sight:
    seen = Sight()
    scatter: Any = delivery.scatter
    pick: Any = fan_out.pick

    def scattered(*args: Any) -> Any:
        parts, others = scatter(*args)
        seen.parts += parts
        return parts, others

    def picked(*args: Any) -> Any:
        blob = pick(*args)
        seen.as_stored.append(blob is not None)
        return blob

    monkeypatch.setattr(delivery, "scatter", scattered)
    monkeypatch.setattr(fan_out, "pick", picked)
    return seen


@pytest.fixture
def shard() -> Iterator[Shard]:
    """With a reader of each topic, so that a message to each of them goes to groups enough."""
    made = Shard(SimulatedFiles())
    for topic in TOPICS:
        subscribed(made, f"of {topic}", topic)
    yield made
    made.end()


def everybody(*packets: bytes) -> list[bytes]:
    """These, and one to each topic."""
    return [*packets, *[wire.publish(topic, b"-") for topic in TOPICS]]


def publish_of(version: int, payload: bytes, qos: int, **how: Any) -> bytes:
    return wire.publish("t/0", payload, qos, 1 if qos else 0, version=version, **how)


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("version", [4, 5])
def test_each_gets_it_in_its_version_at_the_lower_qos_with_the_flag_it_asked_for(
    shard: Shard, sight: Sight, version: int, qos: int, retain: bool
) -> None:
    """MQTT 5.0, 3.3.1.3 and 3.3.4; 3.1.1 has no properties, and no Retain As Published."""
    readers = {
        (theirs, most, kept): subscribed(
            shard, f"{theirs} {most} {kept}", "t/0", options=most | (RETAIN_AS_PUBLISHED if kept else 0), version=theirs
        )
        for theirs, most, kept in [(4, 0, False), (4, 2, False)]
        + [(5, most, kept) for most in range(3) for kept in (False, True)]
    }
    properties = TEXT if version == 5 else []
    publisher = Client(shard, "p", version)
    packet = publish_of(version, b"x", qos, retain=retain, properties=properties)
    others = [wire.publish(topic, b"-", version=version) for topic in TOPICS[1:]]
    publisher.say(packet, *others)
    if qos == 2:
        publisher.say(wire.ack(Kind.PUBREL, 1))
    assert len(sight.parts) == len(readers) + GROUPS - 1, "one of them is of a group with another"
    for (theirs, most, kept), reader in readers.items():
        (message,) = messages(reader)
        assert (message.payload, message.qos) == (b"x", min(qos, most))
        assert message.retain is (retain and kept)
        assert message.get(Prop.CONTENT_TYPE) == ("text" if version == theirs == 5 else None)
    for (group, _, form, *_), as_stored in zip(sight.parts, sight.as_stored, strict=True):
        options, shape = group.forms[form], group.wants.shape
        assert isinstance(shape, tuple)
        is_taken = "t/0" not in group.filters or (qos <= options.qos and not (retain and options.retain_as_published))
        assert as_stored is (shape[0].version == version and is_taken)


def test_with_identifiers_no_local_or_aliases_frames_are_encoded(shard: Shard, sight: Sight) -> None:
    identified = Client(shard, "i", 5)
    identified.say(wire.subscribe(1, [("t/0", 0)], [(Prop.SUBSCRIPTION_ID, 7)]))
    aliased = subscribed(shard, "a", "t/0", properties=[(Prop.TOPIC_ALIAS_MAXIMUM, 5)])
    publisher = subscribed(shard, "p", "t/0", options=NO_LOCAL)
    publisher.say(*everybody())
    assert len(sight.parts) == GROUPS + 3 and len(sight.as_stored) == GROUPS
    (message,) = messages(identified)
    assert message.get(Prop.SUBSCRIPTION_ID) == 7
    (message,) = messages(aliased)
    assert (message.topic, message.get(Prop.TOPIC_ALIAS)) == ("t/0", 1)
    assert messages(publisher) == []
    Client(shard, "q", 5).say(*everybody())
    (message,) = messages(aliased)
    assert (message.topic, message.get(Prop.TOPIC_ALIAS)) == ("", 1)
    assert payloads(publisher) == [b"-"]


def test_a_message_larger_than_a_client_takes_is_counted_and_the_others_come(shard: Shard, sight: Sight) -> None:
    """MQTT-3.1.2-24"""
    small = subscribed(shard, "small", "t/0", properties=[(Prop.MAXIMUM_PACKET_SIZE, 100)])
    large = subscribed(shard, "large", "t/0", properties=[(Prop.MAXIMUM_PACKET_SIZE, 1000)])
    publisher = Client(shard, "p", 5)
    publisher.say(*everybody(wire.publish("t/0", bytes(200))))
    assert payloads(small) == [b"-"] and payloads(large) == [bytes(200), b"-"]
    assert counted(shard) == {("over_limit", "small", "t/0"): 1}
    publisher.say(*everybody())
    assert payloads(small) == [b"-"] and len(sight.parts) == 2 * (GROUPS + 2)
    assert counted(shard) == {("over_limit", "small", "t/0"): 1}


def test_a_message_that_expires_goes_out_with_what_is_left_and_not_too_late(shard: Shard, sight: Sight) -> None:
    """MQTT-3.3.2-5, -6"""
    quick, slow, slower = [subscribed(shard, name, "t/0") for name in ("quick", "slow", "slower")]
    slow.room = slower.room = 0
    publisher = Client(shard, "p", 5)
    publisher.say(*everybody(wire.publish("t/0", b"x", properties=[(Prop.MESSAGE_EXPIRY, 60)])))
    assert len(sight.parts) == GROUPS
    first, _ = messages(quick)
    shard.after(10)
    drain(slow)
    later, _ = messages(slow)
    assert (first.get(Prop.MESSAGE_EXPIRY), later.get(Prop.MESSAGE_EXPIRY)) == (60, 50)
    shard.after(60)
    drain(slower)
    assert payloads(slower) == [b"-"]
    assert counted(shard) == {("expired", "slower", "t/0"): 1}


def test_a_client_that_takes_nothing_delays_nobody_and_gets_all_in_order_later(shard: Shard, sight: Sight) -> None:
    slow, other = subscribed(shard, "slow", "t/0", "t/1"), subscribed(shard, "other", "t/0", "t/1")
    publisher = Client(shard, "p", 5)
    slow.room = 0
    for number in range(3):
        publisher.say(*everybody(wire.publish("t/0", b"%d" % number)))
    expected = [b"%d" % n if at == 0 else b"-" for n in range(3) for at in range(3)]
    assert payloads(slow) == [] and slow.refused
    assert payloads(other) == expected
    drain(slow)
    publisher.say(*everybody(wire.publish("t/0", b"3")))
    assert payloads(slow) == [*expected, b"3", b"-", b"-"] and counted(shard) == {}
    assert all(sight.as_stored) and len(sight.parts) >= 4 * GROUPS


def test_a_client_with_little_credit_gets_the_rest_as_it_acknowledges(shard: Shard, sight: Sight) -> None:
    """Nothing twice, nothing lost, and later chunks do not overtake what was refused."""
    limits = [(Prop.RECEIVE_MAXIMUM, 2)]
    reader = subscribed(shard, "r", "t/0", "t/1", options=1, properties=limits)
    publisher = Client(shard, "p", 5)
    for start in (0, 10):
        packets = [wire.publish(f"t/{n % 2}", b"%d" % (start + n), 1, 1 + n) for n in range(5)]
        publisher.say(*everybody(*packets))
    assert len(sight.parts) == 2 * GROUPS + 1, "the second chunk does not go to who is behind"
    got = []
    while some := messages(reader):
        assert sum(each.qos for each in some) <= 2
        got += [each.payload for each in some if each.qos]
        reader.say(*[wire.ack(Kind.PUBACK, each.packet_id) for each in some if each.qos])
    assert got == [b"%d" % (start + n) for start in (0, 10) for n in range(5)]


class Narrow(Client):
    """Its socket takes so many bytes of what comes from the log, once; the rest is read again."""

    takes = 0

    def write(self, data: Any, owner: Any = None) -> None:
        if owner is not None and self.takes:
            kept = owner[0].cut_at(owner, self.takes)
            self.takes = 0
            data = bytes(data)[:kept]
        super().write(data, owner)


@pytest.mark.parametrize("topics", [["t/0"], ["t/0", "t/1"], ["t/0", "t/2"]])
@pytest.mark.parametrize("takes", [1, 8, 9, 10, 11, 20, 30])
def test_what_a_socket_does_not_take_comes_again_from_the_end_of_a_frame(
    shard: Shard, sight: Sight, topics: list[str], takes: int
) -> None:
    """Frames of consecutive rows, and of others, are found where they begin."""
    reader = Narrow(shard, "r", 5)
    reader.say(wire.subscribe(1, [(topic, 0) for topic in topics]))
    reader.takes = takes
    sent = [(topic, b"%d" % n) for n, topic in enumerate(["t/0", "t/0", "t/1", "t/2", "t/0", "t/1", "t/2"])]
    Client(shard, "p", 5).say(*[wire.publish(*each) for each in sent], *[wire.publish(t, b"-") for t in TOPICS[3:]])
    assert len(sight.parts) == GROUPS + (len(topics) > 1) and all(sight.as_stored)
    drain(reader)
    got = [(each.topic, each.payload) for each in messages(reader)]
    assert got == [each for each in sent if each[0] in topics]


def test_a_fault_at_one_client_ends_its_connection_and_the_others_get_theirs(
    shard: Shard, sight: Sight, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = [subscribed(shard, f"r{n}", "t/0") for n in range(3)]

    def fails(data: object, owner: object = None) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(readers[1], "write", fails)
    Client(shard, "p", 5).say(*everybody(wire.publish("t/0", b"x")))
    assert all(sight.as_stored) and len(sight.parts) == GROUPS
    assert [payloads(reader) for reader in readers] == [[b"x", b"-"], [], [b"x", b"-"]]
    assert [event["client_id"] for event in shard.told("client.crashed")] == ["r1"]


@pytest.mark.parametrize("qos", [0, 1])
def test_a_client_that_leaves_in_the_turn_of_a_message_has_it_when_it_is_back(
    shard: Shard, sight: Sight, qos: int
) -> None:
    reader = subscribed(shard, "r", "t/0", options=1, **LASTING)
    publisher = Client(shard, "p", 5)
    data = b"".join(everybody(wire.publish("t/0", b"x", qos, qos)))
    publisher.link.receive(data, 0, len(data))
    reader.link.lost("the network")
    shard.settle()
    assert payloads(Client(shard, "r", 5, **LASTING)) == [b"x", b"-"]
