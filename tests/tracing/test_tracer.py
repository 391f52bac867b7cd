"""Traces of one shard: contexts on the wire, spans in the right order, and what is left alone.

docs/reference/tracing.md"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client
from tests.shards.delivery.world import LASTING, messages, subscribed
from tests.tracing.world import CALLER, TRACE, Traced, carrying, pairs_of, parent_of


@pytest.fixture
def shard() -> Iterator[Traced]:
    made = Traced(SimulatedFiles())
    made.trace()
    yield made
    made.end()


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_publish_is_one_trace_with_all_its_hops(shard: Traced, qos: int) -> None:
    reader = subscribed(shard, "r", "plant/#", options=qos)
    Client(shard, "p", 5).say(wire.publish("plant/7", b"x", qos, 1, properties=carrying(CALLER)))
    (message,) = messages(reader)
    (publish,) = shard.named("publish")
    assert (publish.trace_id, publish.parent_id) == (TRACE, CALLER[36:52])
    assert parent_of(message) == f"00-{TRACE}-{publish.span_id}-01"
    hops = {"append", "commit", "deliver", *(["acknowledge"] if qos else [])}
    assert {span.name for span in shard.spans()} == hops | {"publish"}
    for span in shard.spans():
        assert span.trace_id == TRACE and span.start_us <= span.end_us
        assert span.name == "publish" or span.parent_id == publish.span_id
    told = publish.attributes
    assert (told["messaging.client.id"], told["messaging.destination.name"]) == ("p", "plant/7")
    assert (told["rumq.qos"], told["messaging.message.body.size"]) == (qos, 1)
    assert told["network.protocol.version"] == "5"
    assert shard.named("deliver")[0].attributes["messaging.client.id"] == "r"


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_message_without_context_gets_one_whatever_its_publisher_speaks(shard: Traced, version: int) -> None:
    """And subscribers before MQTT 5 get the message as it was."""
    readers = [subscribed(shard, f"r{each}", "t", version=each) for each in (4, 5)]
    Client(shard, "p", version).say(wire.publish("t", b"x", 1, 1, version=version))
    ((old,), (new,)) = [messages(each) for each in readers]
    (publish,) = shard.named("publish")
    assert publish.parent_id == "" and parent_of(new) == f"00-{publish.trace_id}-{publish.span_id}-01"
    assert (old.payload, old.properties, new.payload) == (b"x", [], b"x")
    assert len(shard.named("deliver")) == 2


def test_other_properties_and_other_messages_of_the_batch_are_as_they_were(shard: Traced) -> None:
    shard.trace(every=2**31)
    reader = subscribed(shard, "r", "#", options=1)
    given = carrying(CALLER, ("tracestate", "congo=t61"), ("a", "b"))
    packets = [
        wire.publish("a", b"1" * 300, 1, 1),
        wire.publish("b", b"2", 1, 2, properties=[(Prop.CONTENT_TYPE, "text"), *given, (Prop.MESSAGE_EXPIRY, 9)]),
        wire.publish("c", b"3" * 200, 1, 3, properties=[(Prop.CONTENT_TYPE, "text")]),
    ]
    Client(shard, "p", 5).say(*packets)
    got = messages(reader)
    assert [(each.topic, each.payload[:1], len(each.payload)) for each in got] == [
        ("a", b"1", 300), ("b", b"2", 1), ("c", b"3", 200),
    ]  # fmt: skip
    assert pairs_of(got[1])[1:] == [("tracestate", "congo=t61"), ("a", "b")]
    assert (got[1].get(Prop.CONTENT_TYPE), got[1].get(Prop.MESSAGE_EXPIRY)) == ("text", 9)
    assert pairs_of(got[0]) == [] == pairs_of(got[2]) and got[2].get(Prop.CONTENT_TYPE) == "text"
    assert [span.attributes["messaging.destination.name"] for span in shard.named("publish")] == ["b"]
    assert shard.named("publish")[0].state == "congo=t61"


@pytest.mark.parametrize(
    "value",
    [
        CALLER[:-2] + "00",
        "nonsense",
        CALLER[:-1],
        CALLER.upper(),
        "ff" + CALLER[2:],
        CALLER[:3] + "0" * 32 + CALLER[35:],
    ],
)
def test_a_context_that_is_malformed_or_not_sampled_passes_unchanged(shard: Traced, value: str) -> None:
    reader = subscribed(shard, "r", "t")
    Client(shard, "p", 5).say(wire.publish("t", b"x", properties=carrying(value)))
    assert [parent_of(each) for each in messages(reader)] == [value] and not shard.spans()


def test_two_contexts_of_one_message_are_none(shard: Traced) -> None:
    reader = subscribed(shard, "r", "t")
    twice = carrying(CALLER) * 2
    Client(shard, "p", 5).say(wire.publish("t", b"x", properties=twice))
    (message,) = messages(reader)
    assert [value for _, value in pairs_of(message)] == [CALLER, CALLER] and not shard.spans()


def test_a_huge_tracestate_passes_and_is_not_told(shard: Traced) -> None:
    reader = subscribed(shard, "r", "t")
    huge = ("tracestate", "a=" + "x" * 60_000)
    Client(shard, "p", 5).say(wire.publish("t", b"x", properties=carrying(CALLER, huge)))
    (message,) = messages(reader)
    assert pairs_of(message)[1] == huge and shard.named("publish")[0].state == ""


def test_one_message_in_so_many_begins_a_trace(shard: Traced) -> None:
    """On average: which one is chance, so that no device is always it."""
    shard.trace(every=10, per_second_max=100_000)
    publisher = Client(shard, "p", 5)
    for _ in range(40):
        publisher.say(*(wire.publish("t", b"x") for _ in range(50)))
    assert 140 <= len(shard.named("publish")) <= 260
    assert shard.tracer.traces == len(shard.named("publish"))


def test_a_flood_of_sampled_contexts_is_bounded_by_the_second(shard: Traced) -> None:
    shard.trace(every=1000, per_second_max=5)
    reader, publisher = subscribed(shard, "r", "t"), Client(shard, "p", 5)
    for _ in range(3):
        publisher.say(*(wire.publish("t", b"x", properties=carrying(CALLER)) for _ in range(20)))
    assert len(shard.named("publish")) == 5 == shard.tracer.traces
    assert shard.tracer.over >= 55
    got = messages(reader)
    assert len(got) == 60 and sum(parent_of(each) == CALLER for each in got) == 55
    shard.monotonic += 1.0
    publisher.say(wire.publish("t", b"x", properties=carrying(CALLER)))
    assert len(shard.named("publish")) == 6


def test_off_is_off(shard: Traced) -> None:
    shard.trace(every=0)
    reader = subscribed(shard, "r", "t")
    Client(shard, "p", 5).say(wire.publish("t", b"x", 1, 1, properties=carrying(CALLER)))
    assert [parent_of(each) for each in messages(reader)] == [CALLER] and not shard.spans()


def test_the_acknowledgement_of_a_subscriber_is_told_under_its_delivery(shard: Traced) -> None:
    reader = subscribed(shard, "r", "t", options=1)
    Client(shard, "p", 5).say(wire.publish("t", b"x", 1, 1))
    (message,) = messages(reader)
    assert not shard.named("settle")
    shard.now_us += 250_000
    reader.say(wire.ack(Kind.PUBACK, message.packet_id))
    (settle,) = shard.named("settle")
    assert settle.parent_id == shard.named("deliver")[0].span_id
    assert settle.end_us - settle.start_us == 250_000


def test_deliveries_beyond_the_bound_are_counted_in_one_span(shard: Traced) -> None:
    for number in range(20):
        subscribed(shard, f"r{number}", "t")
    Client(shard, "p", 5).say(wire.publish("t", b"x"))
    shard.settle()
    assert len(shard.named("deliver")) == 16
    (others,) = shard.named("deliver to others")
    assert others.attributes["messaging.batch.message_count"] == 4


def test_a_publish_that_is_never_acknowledged_is_told_as_that(shard: Traced) -> None:
    """Its connection ended before the log had the message."""
    publisher = Client(shard, "p", 5)
    publisher.link.receive(data := wire.publish("t", b"x", 1, 1), 0, len(data))
    shard.parts.turn.appender.settle()
    publisher.link.lost("gone")
    shard.settle()
    assert not shard.named("publish")
    shard.now_us += 61_000_000
    shard.tracer.sweep()
    assert [span.fault for span in shard.named("publish")] == ["not acknowledged"]


def test_messages_of_qos_2_that_come_twice_are_one_trace(shard: Traced) -> None:
    publisher = Client(shard, "p", 5)
    publisher.say(wire.publish("t", b"x", 2, 1), wire.publish("t", b"x", 2, 1, dup=True))
    assert len(shard.named("publish")) == 1


def test_a_retained_message_has_the_context_of_its_publish(shard: Traced) -> None:
    Client(shard, "p", 5).say(wire.publish("t", b"x", 1, 1, retain=True))
    (publish,) = shard.named("publish")
    reader = Client(shard, "r", 5)
    reader.say(wire.subscribe(1, [("t", 0)]))
    (message,) = [each for each in reader.take() if each.kind is Kind.PUBLISH]
    assert parent_of(message) == f"00-{publish.trace_id}-{publish.span_id}-01"


def test_of_a_shared_subscription_the_member_that_got_it_is_told(shard: Traced) -> None:
    readers = [subscribed(shard, f"r{n}", "$share/g/t") for n in range(2)]
    Client(shard, "p", 5).say(wire.publish("t", b"x"))
    got = [reader for reader in readers if messages(reader)]
    (deliver,) = shard.named("deliver")
    assert len(got) == 1 and "g" in str(deliver.attributes["messaging.consumer.group.name"])
    assert deliver.attributes["messaging.client.id"] in ("r0", "r1")


def test_a_replay_is_a_trace_of_its_own_that_is_linked_to_that_of_the_publish(shard: Traced) -> None:
    """What was published last week is no part of a trace of last week any more."""
    Client(shard, "p", 5).say(wire.publish("t", b"x", 1, 1, properties=carrying(CALLER, ("a", "b"))))
    (publish,) = shard.named("publish")
    shard.now_us += 7 * 86_400_000_000
    reader = Client(shard, "r", 5)
    reader.say(wire.subscribe(1, [("t", 0)], properties=[(Prop.USER_PROPERTY, ("rumq-from", "earliest"))]))
    shard.settle()
    (message,) = [each for each in reader.take() if each.kind is Kind.PUBLISH]
    (replay,) = shard.named("replay")
    assert replay.links == [(TRACE, publish.span_id)] and replay.trace_id != TRACE and not replay.parent_id
    assert parent_of(message) == f"00-{replay.trace_id}-{replay.span_id}-01" and ("a", "b") in pairs_of(message)
    assert replay.attributes["messaging.client.id"] == "r" and not shard.named("deliver")


def test_a_session_that_was_away_continues_the_trace(shard: Traced) -> None:
    """The delivery is later in the same trace, as the message has waited for it."""
    reader = subscribed(shard, "r", "t", options=1, **LASTING)
    reader.link.lost("gone")
    Client(shard, "p", 5).say(wire.publish("t", b"x", 1, 1))
    (publish,) = shard.named("publish")
    again = Client(shard, "r", 5, **LASTING)
    shard.settle()
    (message,) = messages(again)
    assert parent_of(message) == f"00-{publish.trace_id}-{publish.span_id}-01"
    assert [span.attributes["messaging.client.id"] for span in shard.named("deliver")] in (["r"], [])


def test_with_topic_aliases_and_many_groups_deliveries_are_told_too(shard: Traced) -> None:
    """Bytes made for one client, and rows that are sorted to groups."""
    readers = [
        subscribed(shard, "alias", "t", properties=[(Prop.TOPIC_ALIAS_MAXIMUM, 5)]),
        *(subscribed(shard, f"r{n}", "+" if n else "t", options=n, version=v) for n in range(3) for v in (5,)),
        subscribed(shard, "old", "#", version=4),
    ]
    publisher = Client(shard, "p", 5)
    publisher.say(*(wire.publish(topic, b"x") for topic in ("t", "u", "t")))
    assert all(messages(each) for each in readers)
    told = sorted(str(span.attributes["messaging.client.id"]) for span in shard.named("deliver"))
    assert told == sorted(["alias"] * 2 + ["r0"] * 2 + ["r1"] * 3 + ["r2"] * 3 + ["old"] * 3)
