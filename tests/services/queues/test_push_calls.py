"""Pushes over gRPC: ids in order, refusals of single messages, streams, bounds."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from tests.services.conftest import SECONDS, fault_of, refused
from tests.services.generated_client import queues_pb as qb
from tests.services.queues.conftest import QueueCaller
from tests.services.queues.test_queue_calls import INVALID, UNKNOWN, fault


def stream(queues: QueueCaller, requests: list[Any]) -> tuple[list[str], list[tuple[int, str]]]:
    ids: list[str] = []
    refusals: list[tuple[int, str]] = []
    for answer in queues.stub.PushStream(iter(requests), timeout=SECONDS):
        refusals += [(len(ids) + each.index, each.reason) for each in answer.refusals]
        ids += answer.ids
    return ids, refusals


def test_a_message_is_consumed_as_it_was_pushed(queues: QueueCaller) -> None:
    queues.create("whole")
    channel = queues.channel("whole")
    headers = [qb.Header(name="n", value="1"), qb.Header(name="n", value="ä"), qb.Header(name="rumq-x", value="no")]
    [message_id] = queues.push(
        "whole", b"\x00\xff", topic="T", key="k", headers=headers, content_type="x/y", expiry_seconds=300
    )
    consumer = queues.consume(channel)
    [found] = consumer.take(1)
    assert (found.id, found.topic, found.number, found.payload) == (message_id, "t", 1, b"\x00\xff")
    assert (found.key, found.content_type, found.tries) == ("k", "x/y", 1)
    assert [(each.name, each.value) for each in found.headers] == [("n", "1"), ("n", "ä")]
    assert found.pushed_us and not found.origin
    consumer.answer(acknowledge=[found.id])
    consumer.close()


def test_a_stream_answers_in_order_and_keeps_the_order_of_a_topic(queues: QueueCaller) -> None:
    queues.create("streamed")
    requests = [
        qb.PushStreamRequest(
            queue="Streamed" if part == 0 else "",
            messages=[qb.PushMessage(payload=b"%d" % (part * 20 + n), topic=f"t{n % 2}") for n in range(20)],
        )
        for part in range(50)
    ]
    ids, refusals = stream(queues, requests)
    assert refusals == []
    assert ids == [f"{n // 2 + 1}@t{n % 2}" for n in range(1000)]
    seen = queues.ask("PeekQueue", queue="streamed", topic="t1", limit=1000).messages
    assert [each.payload for each in seen] == [b"%d" % n for n in range(1, 1000, 2)]


def test_a_refused_message_of_a_stream_ends_nothing(queues: QueueCaller) -> None:
    queues.create("mixed")
    good = qb.PushMessage(payload=b"x")
    bad = [qb.PushMessage(topic="a/#"), qb.PushMessage(key="k" * 65_536), qb.PushMessage(delay_seconds=float("nan"))]
    ids, refusals = stream(queues, [qb.PushStreamRequest(queue="mixed", messages=[good, *bad, good]) for _ in range(2)])
    assert ids == ["1@__none__", "", "", "", "2@__none__", "3@__none__", "", "", "", "4@__none__"]
    assert refusals == [(at, "ARGUMENT_INVALID") for at in (1, 2, 3, 6, 7, 8)]


def test_a_stream_without_a_queue_or_to_none_is_refused(queues: QueueCaller) -> None:
    assert refused(queues.stub.PushStream, iter([qb.PushStreamRequest()])) == INVALID
    request = qb.PushStreamRequest(queue="no-such", messages=[qb.PushMessage()])
    assert refused(queues.stub.PushStream, iter([request])) == UNKNOWN
    assert list(queues.stub.PushStream(iter([]), timeout=SECONDS)) == []


def test_a_push_without_messages_or_with_too_many_is_refused(queues: QueueCaller) -> None:
    queues.create("many")
    assert fault(queues, "PushToQueue", queue="many") == INVALID
    too_many = fault(queues, "PushToQueue", queue="many", messages=[qb.PushMessage()] * 10_001)
    assert too_many == ("RESOURCE_EXHAUSTED", "REQUEST_TOO_LARGE")
    assert not queues.ask("PeekQueue", queue="many").messages


def test_a_push_without_ids_is_taken(queues: QueueCaller) -> None:
    queues.create("quick")
    answer = queues.ask("PushToQueue", queue="quick", messages=[qb.PushMessage(payload=b"1")], without_ids=True)
    assert list(answer.ids) == [""] and not answer.refusals
    assert queues.push("quick", b"2") == ["2@__none__"]


def test_a_delayed_message_comes_at_its_time(queues: QueueCaller) -> None:
    queues.create("delayed")
    channel = queues.channel("delayed")
    assert queues.push("delayed", b"late", delay_seconds=1.0) == [""]
    queues.push("delayed", b"now")
    consumer = queues.consume(channel)
    assert [each.payload for each in consumer.take(2)] == [b"now", b"late"]
    consumer.vanish()


def test_ids_repeat_and_never_change_content(queues: QueueCaller) -> None:
    """What comes again has its id, and an id its content, through looks, rejections and consumers that vanish."""
    queues.create("same")
    channel = queues.channel("same", tries_max=0)
    contents: dict[str, bytes] = {}
    for number in range(40):
        for message_id in queues.push("same", b"%d" % number, topic=f"t{number % 3}"):
            assert message_id not in contents
            contents[message_id] = b"%d" % number
    for run in range(4):
        consumer = queues.consume(channel, credit=40)
        found = consumer.take(40)
        assert {each.id: each.payload for each in found} == contents
        if run % 2:
            consumer.answer(reject=[each.id for each in found])
            found += consumer.take(40)
        consumer.vanish()
    seen = queues.ask("PeekQueue", queue="same", limit=100).messages
    assert {each.id: each.payload for each in seen} == contents


def test_a_push_past_its_deadline_ends(queues: QueueCaller) -> None:
    queues.create("late")
    with pytest.raises(grpc.RpcError) as failed:
        queues.stub.PushToQueue(qb.PushToQueueRequest(queue="late", messages=[qb.PushMessage()]), timeout=0.001)
    assert failed.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert queues.push("late", b"x")


def test_a_request_that_is_no_protobuf_is_the_callers_fault(queues: QueueCaller) -> None:
    channel = queues.broker.channel()
    for name in ("PushToQueue", "CreateQueue", "GetHeartbeat", "Acknowledge"):
        with pytest.raises(grpc.RpcError) as failed:
            channel.unary_unary(f"/rumq.v1.Queues/{name}")(b"\xff", timeout=SECONDS)
        assert fault_of(failed.value)[:2] == INVALID
    for name in ("PushStream", "Consume"):
        with pytest.raises(grpc.RpcError) as failed:
            list(channel.stream_stream(f"/rumq.v1.Queues/{name}")(iter([b"\xff"]), timeout=SECONDS))
        assert fault_of(failed.value)[:2] == INVALID
    channel.close()
