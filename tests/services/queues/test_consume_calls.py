"""Consuming over gRPC: credit, answers, visible times, one way and both ways, consumers that end, vanish or stall."""

from __future__ import annotations

import time
from typing import Any

import grpc
import pytest

from tests.services.conftest import SECONDS, fault_of, refused
from tests.services.generated_client import queues_pb as qb
from tests.services.queues.conftest import QueueCaller
from tests.services.queues.test_queue_calls import INVALID, UNKNOWN, fault


def filled(queues: QueueCaller, label: str, count: int, **settings: Any) -> str:
    """A channel with so many messages. returns: its id"""
    queues.create(label, records_max=0)
    channel = queues.channel(label, **settings)
    if count:
        queues.push(label, *(b"%d" % number for number in range(count)))
    return channel


def test_messages_are_shared_and_each_is_with_one_consumer(queues: QueueCaller) -> None:
    channel = filled(queues, "shared", 60)
    consumers = [queues.consume(channel, credit=20) for _ in range(3)]
    found = [each.take(20) for each in consumers]
    ids = [each.id for batch in found for each in batch]
    assert len(ids) == len(set(ids)) == 60
    for consumer, batch in zip(consumers, found, strict=True):
        assert consumer.answer(acknowledge=[each.id for each in batch]).done == 20
        assert consumer.close() == []
    assert queues.depth_at(channel, 0)


def test_credit_bounds_what_is_held(queues: QueueCaller) -> None:
    channel = filled(queues, "credit", 10)
    consumer = queues.consume(channel, credit=3)
    first = consumer.take(3)
    assert [each.payload for each in first] == [b"0", b"1", b"2"]
    consumer.answer(acknowledge=[first[0].id])
    assert [each.payload for each in consumer.take(1)] == [b"3"]
    consumer.vanish()
    for credit in (10_001, 4_000_000_000):
        assert fault(queues, "SubscribeToChannel", channel=channel, credit=credit) == INVALID


def test_answers_of_what_one_does_not_hold_change_nothing(queues: QueueCaller) -> None:
    channel = filled(queues, "strangers", 2)
    owner, thief = queues.consume(channel, credit=1), queues.consume(channel, credit=1)
    [held] = owner.take(1)
    thief.take(1)
    invented = [held.id, "99@__none__", "1@no/such"]
    for field in ("acknowledge", "reject", "extend"):
        told = thief.answer(**{field: invented})
        assert (told.done, list(told.not_held)) == (0, invented)
    told = owner.answer(acknowledge=[held.id, held.id, "5@x"])
    assert (told.done, list(told.not_held)) == (1, ["5@x"])
    owner.vanish()
    thief.vanish()


@pytest.mark.parametrize("message_id", ["", "x", "0@a", "-1@a", "1@", "9" * 30 + "@a", "1@" + "x" * 65_536])
def test_an_id_that_cannot_be_ends_the_call_alone(queues: QueueCaller, message_id: str) -> None:
    channel = filled(queues, "bad-ids", 0)
    other = queues.consume(channel)
    consumer = queues.consume(channel)
    consumer.send(acknowledge=[message_id])
    with pytest.raises(grpc.RpcError) as failed:
        next(consumer.call)
    assert fault_of(failed.value)[:2] == INVALID
    consumer.vanish()
    assert other.close() == []


@pytest.mark.parametrize(
    "answers", [{"reject": ["1@a"], "delay_seconds": -1.0}, {"reject": ["1@a"], "delay_seconds": float("nan")},
                {"extend": ["1@a"], "extend_seconds": 1e9}, {"extend": ["1@a"], "extend_seconds": float("nan")}],
)  # fmt: skip
def test_times_that_cannot_be_meant_are_refused(queues: QueueCaller, answers: dict[str, Any]) -> None:
    consumer = queues.consume(filled(queues, "bad-times", 0))
    consumer.send(**answers)
    with pytest.raises(grpc.RpcError) as failed:
        next(consumer.call)
    assert fault_of(failed.value)[:2] == INVALID
    consumer.vanish()


def test_rejected_messages_come_again_and_die(queues: QueueCaller) -> None:
    channel = filled(queues, "dying", 1, tries_max=2)
    consumer = queues.consume(channel)
    for tries in (1, 2):
        [found] = consumer.take(1)
        assert (found.payload, found.tries) == (b"0", tries)
        consumer.answer(reject=[found.id])
    until = time.monotonic() + SECONDS
    while not (letters := queues.ask("PeekQueue", queue="dying.dead").messages):
        assert time.monotonic() < until
    assert (letters[0].payload, letters[0].origin, letters[0].dead_tries) == (b"0", "dying/1@__none__", 2)
    assert queues.ask("RedriveQueue", queue="dying").messages == 1
    [found] = consumer.take(1)
    assert (found.payload, found.tries, found.id) == (b"0", 1, "2@__none__")
    consumer.vanish()


def test_a_visible_time_that_passes_gives_the_message_out_again_unless_it_is_extended(queues: QueueCaller) -> None:
    channel = filled(queues, "visible", 2, visible_seconds=1.0)
    slow = queues.consume(channel, credit=1)
    [first] = slow.take(1)
    assert slow.answer(extend=[first.id], extend_seconds=60).done == 1
    other = queues.consume(channel, credit=1)
    [second] = other.take(1)
    [again] = other.take(1)  # nobody else has room for it
    assert (again.id, again.tries) == (second.id, 2)
    assert list(slow.answer(acknowledge=[first.id, second.id]).not_held) == [second.id]
    other.vanish()
    slow.vanish()


def test_who_closes_gives_back_without_a_try_and_who_vanishes_with_one(queues: QueueCaller) -> None:
    channel = filled(queues, "ends", 3)
    leaving = queues.consume(channel)
    assert [each.tries for each in leaving.take(3)] == [1, 1, 1]
    assert leaving.close() == []
    vanishing = queues.consume(channel)
    assert [each.tries for each in vanishing.take(3)] == [1, 1, 1]
    vanishing.vanish()
    last = queues.consume(channel)
    assert [each.tries for each in last.take(3)] == [2, 2, 2]
    last.vanish()


def test_channel_and_credit_are_of_the_first_request_alone(queues: QueueCaller) -> None:
    channel = filled(queues, "first", 0)
    for second in (qb.ConsumeRequest(channel=channel), qb.ConsumeRequest(credit=5)):
        assert refused(queues.stub.Consume, iter([qb.ConsumeRequest(channel=channel), second])) == INVALID
    assert refused(queues.stub.Consume, iter([])) == INVALID
    assert refused(queues.stub.Consume, iter([qb.ConsumeRequest(channel="no-such")])) == UNKNOWN


def test_a_subscription_is_answered_by_the_consumers_name(queues: QueueCaller) -> None:
    channel = filled(queues, "named", 3)
    call = queues.subscribe(channel, credit=2)
    name = next(call).consumer
    found = list(next(call).messages)
    while len(found) < 2:
        found += next(call).messages
    told = queues.ask(
        "Acknowledge", consumer=name, answers=qb.Answers(acknowledge=[found[0].id, "7@x"], reject=[found[1].id])
    ).answered
    assert (told.requests, told.done, list(told.not_held)) == (1, 2, ["7@x"])
    more = list(next(call).messages)
    while len(more) < 2:
        more += next(call).messages
    assert {(each.payload, each.tries) for each in more} == {(b"1", 2), (b"2", 1)}
    call.cancel()
    until = time.monotonic() + SECONDS
    while queues.ask("GetChannel", channel=channel).channel.consumers:
        assert time.monotonic() < until
    answers = qb.Answers(acknowledge=[found[0].id])
    assert fault(queues, "Acknowledge", consumer=name, answers=answers) == UNKNOWN
    assert fault(queues, "Acknowledge", consumer="x" * 65_536, answers=answers) == UNKNOWN
    too_many = qb.Answers(acknowledge=[f"{n}@x" for n in range(1, 10_002)])
    other = queues.subscribe(channel)
    name = next(other).consumer
    assert fault(queues, "Acknowledge", consumer=name, answers=too_many)[1] == "REQUEST_TOO_LARGE"
    other.cancel()


def test_a_subscription_that_acknowledges_by_itself(queues: QueueCaller) -> None:
    channel = filled(queues, "automatic", 50)
    call = queues.subscribe(channel, auto_acknowledge=True, credit=5)
    found: list[bytes] = []
    while len(found) < 50:
        found += [each.payload for each in next(call).messages]
    assert found == [b"%d" % number for number in range(50)]
    until = time.monotonic() + SECONDS
    while queues.ask("GetChannel", channel=channel).channel.acknowledged < 50:
        assert time.monotonic() < until
    call.cancel()


def test_an_ordered_channel_gives_the_messages_of_a_key_one_by_one(queues: QueueCaller) -> None:
    channel = filled(queues, "ordered", 0, is_ordered=True)
    queues.push("ordered", b"a1", b"a2", key="a")
    queues.push("ordered", b"b1", key="b")
    consumer = queues.consume(channel)
    found = consumer.take(2)
    assert [each.payload for each in found] == [b"a1", b"b1"]
    consumer.answer(acknowledge=[found[0].id])
    assert [each.payload for each in consumer.take(1)] == [b"a2"]
    consumer.vanish()


def test_a_message_goes_both_ways_between_grpc_and_mqtt(queues: QueueCaller) -> None:
    """A consumer over gRPC that vanishes: what it held comes to one over MQTT."""
    from tests.conformance.peer import Peer

    channel = filled(queues, "both", 3)
    consumer = queues.consume(channel)
    held = consumer.take(3)
    consumer.answer(acknowledge=[held[0].id])
    share = queues.ask("GetChannel", channel=channel).channel.share
    peer = Peer(queues.broker.process.address, version=5)
    peer.connect(client_id="mqtt-consumer")
    peer.subscribe(share, qos=1)
    consumer.vanish()
    assert sorted(peer.message().payload for _ in range(2)) == [b"1", b"2"]
    peer.close()
