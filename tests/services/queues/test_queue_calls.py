"""The contract of rumq.v1.Queues by a generated client, on a real broker: queues, and what is told of them."""

from __future__ import annotations

import time
from typing import Any

import grpc
import pytest

from tests.services.conftest import SECONDS, fault_of, refused
from tests.services.generated_client import queues_pb as qb
from tests.services.queues.conftest import QueueCaller

UNKNOWN = ("NOT_FOUND", "QUEUE_UNKNOWN")
INVALID = ("INVALID_ARGUMENT", "ARGUMENT_INVALID")


def fault(queues: QueueCaller, name: str, **fields: Any) -> tuple[str, str]:
    request = getattr(qb, f"{name}Request")(**fields)
    return refused(getattr(queues.stub, name), request, metadata=queues.metadata)


def test_a_queue_is_created_told_listed_and_deleted_in_any_case(queues: QueueCaller) -> None:
    made = queues.create("Life", records_max=7, ttl_seconds=60, when_full=qb.WHEN_FULL_DROP_OLDEST)
    assert (made.label, made.settings.records_max, made.settings.ttl_seconds) == ("life", 7, 60)
    again = queues.create("LIFE", records_max=7, ttl_seconds=60, when_full=qb.WHEN_FULL_DROP_OLDEST)
    assert again.created_us == made.created_us
    assert queues.ask("GetQueue", queue="lIFE").queue == again
    assert [each.label for each in queues.ask("ListQueues", part="LiF").queues] == ["life"]
    taken = fault(queues, "CreateQueue", queue="life", settings=qb.QueueSettings(records_max=8))
    assert taken == ("ALREADY_EXISTS", "QUEUE_EXISTS")
    queues.ask("DeleteQueue", queue="LIFE")
    for name in ("GetQueue", "DeleteQueue", "RebuildQueue", "ListTopics", "PeekQueue", "PurgeQueue", "RedriveQueue"):
        assert fault(queues, name, queue="life") == UNKNOWN


def test_what_changes_queues_is_an_event(queues: QueueCaller) -> None:
    queues.create("audited")
    queues.ask("DeleteQueue", queue="AUDITED")
    for action in ("create_queue", "delete_queue"):
        queues.broker.process.heard(
            lambda event, action=action: (
                (event["event"], event.get("action"), event.get("what"))
                == ("admin.action", action, {"label": "audited"})
            )
        )


def test_usual_settings_are_told(queues: QueueCaller) -> None:
    made = queues.create("usual")
    assert (made.settings.ttl_seconds, made.settings.records_max, made.settings.bytes_max) == (600, 10_000, 0)
    assert made.settings.when_full == qb.WHEN_FULL_REFUSE
    any_number = queues.create("usual-any", records_max=0)
    assert any_number.settings.records_max == 0


@pytest.mark.parametrize(
    "settings", [{"ttl_seconds": 7200}, {"records_max": 1 << 60}, {"when_full": 9}, {"ttl_seconds": (1 << 32) - 1}]
)
def test_settings_that_cannot_be_meant_are_refused(queues: QueueCaller, settings: dict[str, Any]) -> None:
    assert fault(queues, "CreateQueue", queue="odd", settings=qb.QueueSettings(**settings)) == INVALID
    assert fault(queues, "GetQueue", queue="odd") == UNKNOWN


@pytest.mark.parametrize("label", ["", "a/b", "a+", "#", "$config", ".dead", "a\0b", "x" * 65_536, "é" * 101])
def test_a_label_that_cannot_be_is_refused_with_a_short_sentence(queues: QueueCaller, label: str) -> None:
    for name in ("CreateQueue", "GetQueue", "DeleteQueue", "RebuildQueue", "ListTopics", "CreateChannel"):
        request = getattr(qb, f"{name}Request")(queue=label)
        with pytest.raises(grpc.RpcError) as failed:
            getattr(queues.stub, name)(request, timeout=SECONDS)
        assert fault_of(failed.value)[:2] == INVALID and len(failed.value.details()) < 300


def test_a_deleted_queue_leaves_others_and_begins_empty_again(queues: QueueCaller) -> None:
    for label in ("gone", "gone-not", "kept"):
        queues.create(label)
    doomed, kept = queues.channel("gone"), queues.channel("kept")
    for label in ("gone", "gone-not", "kept"):
        queues.push(label, label.encode())
    consumer = queues.consume(doomed)
    consumer.take(1)
    queues.ask("DeleteQueue", queue="Gone")
    with pytest.raises(grpc.RpcError) as failed:
        next(consumer.call)
    assert fault_of(failed.value)[:2] == UNKNOWN
    consumer.vanish()
    assert fault(queues, "GetChannel", channel=doomed) == UNKNOWN
    labels = [each.label for each in queues.ask("ListQueues", part="gone").queues]
    assert "gone-not" in labels and "gone" not in labels
    assert [each.payload for each in queues.ask("PeekQueue", queue="gone-not").messages] == [b"gone-not"]
    other = queues.consume(kept)
    assert [each.payload for each in other.take(1)] == [b"kept"]
    other.close()
    queues.create("gone")
    assert not queues.ask("PeekQueue", queue="gone").messages


def test_queues_are_listed_in_pages(queues: QueueCaller) -> None:
    labels = [f"page{number}" for number in range(7)]
    for each in reversed(labels):
        queues.create(each)
    found: list[str] = []
    token = ""
    while True:
        page = queues.ask("ListQueues", part="PAGE", page_size=3, page_token=token)
        found += [each.label for each in page.queues]
        token = page.next_page_token
        if not token:
            break
    assert found == labels
    assert fault(queues, "ListQueues", page_size=1001) == INVALID
    assert list(queues.ask("ListQueues", page_token="~" * 60_000).queues) == []


def test_topics_and_messages_are_told(queues: QueueCaller) -> None:
    queues.create("told")
    queues.channel("told", topic="Wanted")
    assert queues.push("told", b"a", b"b", topic="Sport/Tennis") == ["1@sport/tennis", "2@sport/tennis"]
    queues.push("told", b"c")
    assert list(queues.ask("ListTopics", queue="told").topics) == ["__none__", "sport/tennis", "wanted"]
    seen = queues.ask("PeekQueue", queue="told").messages
    assert [(each.id, each.number, each.topic, each.payload, each.tries) for each in seen] == [
        ("1@sport/tennis", 1, "sport/tennis", b"a", 0), ("2@sport/tennis", 2, "sport/tennis", b"b", 0),
        ("1@__none__", 1, "", b"c", 0),
    ]  # fmt: skip
    one = queues.ask("PeekQueue", queue="TOLD", topic="SPORT/tennis", limit=1).messages
    assert [each.payload for each in one] == [b"a"]
    later = queues.ask("PeekQueue", queue="told", after_us=seen[-1].pushed_us - 1).messages
    assert later[-1].payload == b"c"
    assert not queues.ask("PeekQueue", queue="told", after_us=seen[-1].pushed_us).messages
    assert fault(queues, "PeekQueue", queue="told", limit=1001) == INVALID
    assert fault(queues, "PeekQueue", queue="told", after_us=-1) == INVALID


def test_a_look_is_bounded_in_bytes(queues: QueueCaller) -> None:
    queues.create("large")
    for _ in range(6):
        queues.push("large", b"x" * (1 << 20))
    found = queues.ask("PeekQueue", queue="large", limit=1000).messages
    assert 1 <= len(found) <= 4 and found[0].number == 1


def test_rebuilding_tells_where_a_queue_stands_and_changes_nothing(queues: QueueCaller) -> None:
    queues.create("stands")
    channel = queues.channel("stands")
    ids = queues.push("stands", b"1", b"2")
    consumer = queues.consume(channel)
    held = consumer.take(2)
    for _ in range(3):
        found = queues.ask("RebuildQueue", queue="Stands")
        assert (found.queue.label, list(found.queue.channels)) == ("stands", [channel])
        [place] = found.partitions
        assert (place.stream, place.partition, place.shard, place.durability, place.offline) == (
            "queues", 0, 0, "disk", "",
        )  # fmt: skip
        assert place.committed_lsn >= 2 and not found.missing and not found.was_stale
    assert [each.id for each in held] == ids
    assert consumer.answer(acknowledge=ids).done == 2
    assert consumer.close() == []


def test_a_full_queue_refuses_with_its_numbers(queues: QueueCaller) -> None:
    queues.create("small", records_max=3)
    messages = [qb.PushMessage(payload=b"%d" % number) for number in range(5)]
    answer = queues.ask("PushToQueue", queue="small", messages=messages)
    assert list(answer.ids) == ["1@__none__", "2@__none__", "3@__none__", "", ""]
    assert [(each.index, each.reason) for each in answer.refusals] == [(3, "QUEUE_FULL"), (4, "QUEUE_FULL")]
    with pytest.raises(grpc.RpcError) as failed:
        queues.push("small", b"more")
    code, reason, metadata = fault_of(failed.value)
    assert (code, reason) == ("RESOURCE_EXHAUSTED", "QUEUE_FULL") and metadata["limit"] == "3"
    assert queues.ask("GetQueue", queue="small").queue.refused == 3


def test_the_heartbeat_tells_node_time_and_queues(queues: QueueCaller) -> None:
    queues.create("beats")
    found = queues.ask("GetHeartbeat")
    assert found.serving and not found.why and found.node == "" and found.queues >= 1
    assert abs(found.time_us / 1e6 - time.time()) < 60
