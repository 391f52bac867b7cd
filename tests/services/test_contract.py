"""The contract of rumq.v1.BrokerService, by a client that was generated from the proto files, on a real broker."""

import time

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tests.broker_process import Address
from tests.services.conftest import EARLIEST, LATEST, SECONDS, GrpcBroker, fault_of, message, refused
from tests.services.generated_client import pb

INVALID = "INVALID_ARGUMENT"


def test_ids_rise_by_one_per_topic_from_one(server: GrpcBroker) -> None:
    assert [server.publish("ids/a") for _ in range(3)] == [1, 2, 3]
    assert server.publish("ids/b") == 1
    assert server.publish("ids/a") == 4


def test_a_stream_answers_with_the_ids_in_order(server: GrpcBroker) -> None:
    ids = server.publish_all([message(f"stream/{n % 3}", b"%d" % n) for n in range(3_000)])
    assert ids == [n // 3 + 1 for n in range(3_000)]
    records = server.stored({"stream/#": EARLIEST})
    assert [(each.topic, each.id, each.payload) for each in records] == [
        (f"stream/{n % 3}", n // 3 + 1, b"%d" % n) for n in range(3_000)
    ]


def test_two_streams_of_one_user_share_a_topic_and_no_id(server: GrpcBroker) -> None:
    """Both publish on one connection: which id is whose is known by the order of acknowledgements."""

    def requests(name: bytes) -> list[object]:
        return [pb.PublishStreamRequest(messages=[message("two", name)] * 50) for _ in range(20)]

    calls = {name: server.stub.PublishStream(iter(requests(name)), timeout=SECONDS) for name in (b"one", b"other")}
    ids = {name: [each for answer in call for each in answer.ids] for name, call in calls.items()}
    assert sorted(ids[b"one"] + ids[b"other"]) == list(range(1, 2_001))
    for record in server.stored({"two": EARLIEST}):
        assert record.id in ids[record.payload]


def test_a_record_has_what_its_publisher_said(server: GrpcBroker) -> None:
    sent = message(
        "whole", b"\x00\xff", content_type="text/plain", response_topic="answers/7", correlation_data=b"\x01",
        expiry_seconds=1_000, retain=True,
        user_properties=[pb.UserProperty(name="n", value="1"), pb.UserProperty(name="n", value="ä")],
    )  # fmt: skip
    before_us = time.time_ns() // 1000
    answer = server.stub.Publish(pb.PublishRequest(message=sent), timeout=SECONDS)
    record = server.fetch("whole", answer.id, with_publisher=True)
    for field in ("topic", "payload", "content_type", "response_topic", "correlation_data", "retain"):
        assert getattr(record, field) == getattr(sent, field)
    assert list(record.user_properties) == list(sent.user_properties)
    assert 900 < record.expiry_seconds <= 1_000
    assert before_us <= record.time_us <= time.time_ns() // 1000
    assert record.partition == "main/g1/p0" and record.publisher.startswith("rumq-grpc-")
    assert server.stored({"whole": EARLIEST}, with_publishers=True)[0].publisher == record.publisher
    assert not server.stored({"whole": EARLIEST})[0].publisher


def test_an_empty_payload_and_no_expiry(server: GrpcBroker) -> None:
    record = server.fetch("empty", server.publish("empty"))
    assert record.payload == b"" and not record.HasField("expiry_seconds")


@pytest.mark.parametrize(
    ("topic", "number", "reason"),
    [("fetched", 3, "ID_UNKNOWN"), ("no/such", 1, "ID_UNKNOWN"), ("fetched", 0, "ARGUMENT_INVALID"),
     ("a/#", 1, "TOPIC_INVALID"), ("", 1, "TOPIC_INVALID"), ("fetched", 2**63, "ID_UNKNOWN")],
)  # fmt: skip
def test_a_record_that_is_not_there_is_the_callers_fault(
    server: GrpcBroker, topic: str, number: int, reason: str
) -> None:
    server.publish("fetched")
    assert refused(server.stub.Fetch, pb.FetchRequest(topic=topic, id=number)) == (INVALID, reason)


def test_an_expired_record_is_neither_fetched_nor_sent(server: GrpcBroker) -> None:
    number = server.publish("short", b"gone", expiry_seconds=1)
    server.publish("short", b"stays")
    until = time.monotonic() + SECONDS
    fault = None
    while fault is None and time.monotonic() < until:
        try:
            server.fetch("short", number)
        except grpc.RpcError as failed:
            fault = fault_of(failed)
    assert fault == (INVALID, "ID_EXPIRED", {"topic": "short", "id": str(number)})
    assert [each.payload for each in server.stored({"short": EARLIEST})] == [b"stays"]


def test_past_and_live_are_joined_without_a_gap(server: GrpcBroker) -> None:
    """While messages are published all the time, a subscription from the begin gets each once, in order."""
    for _ in range(5):
        server.publish_all([message("joined")] * 200)
        call = server.subscribe({"joined": EARLIEST})
        expected = 1
        writers = server.stub.PublishStream(
            iter([pb.PublishStreamRequest(messages=[message("joined")] * 50) for _ in range(20)]), timeout=SECONDS
        )
        last = max(each for answer in writers for each in answer.ids)
        for answer in call:
            for record in answer.records:
                assert record.id == expected
                expected += 1
            if expected > last:
                break
        call.cancel()


def test_equal_time_stamps_lose_nothing(server: GrpcBroker) -> None:
    """Who goes on from the time of any record gets all with that time, and none before."""
    server.publish_all([message("stamps", b"%d" % n) for n in range(500)])
    records = server.stored({"stamps": EARLIEST})
    times = sorted({each.time_us for each in records})
    assert len(times) < len(records), "the broker gave each its own time: this shows nothing"
    for time_us in times[:20]:
        assert [each.id for each in server.stored({"stamps": {"time_us": time_us}})] == [
            each.id for each in records if each.time_us >= time_us
        ]


def test_a_cursor_goes_on_exactly_behind_what_was_sent(server: GrpcBroker) -> None:
    server.publish_all([message(f"cursor/{n % 7}", b"x" * 1_000) for n in range(2_000)])
    everything = [(each.topic, each.id) for each in server.stored({"cursor/#": EARLIEST, "cursor/3": {"id": 100}})]
    found, cursor = [], ""
    while len(found) < len(everything):
        call = server.subscribe({"cursor/#": EARLIEST, "cursor/3": {"id": 100}}, cursor=cursor)
        answer = next(call)
        call.cancel()
        found += [(each.topic, each.id) for each in answer.records]
        cursor = answer.cursor
    assert found == everything


def test_a_cursor_keeps_begins_that_lie_behind_it(server: GrpcBroker) -> None:
    """Of two filters one begins at the end: a call that goes on does not get what lies before that."""
    server.publish_all([message(f"later/{name}", b"x" * 2_000) for name in "ab" for _ in range(300)])
    call = server.subscribe({"later/a": LATEST, "later/b": EARLIEST})
    first = next(call)
    call.cancel()
    assert not first.caught_up
    server.publish("later/a", b"new")
    rest = server.stored({"later/a": LATEST, "later/b": EARLIEST}, cursor=first.cursor)
    found = [*first.records, *rest]
    assert [each.id for each in found if each.topic == "later/b"] == list(range(1, 301))
    assert [each.id for each in found if each.topic == "later/a"] == [301]


def test_overlapping_entries_send_each_record_once(server: GrpcBroker) -> None:
    server.publish_all([message(f"over/{n % 2}") for n in range(100)])
    found = server.stored({"over/#": LATEST, "over/+": {"time_us": 0}, "over/0": {"id": 11}, "over/1": EARLIEST})
    assert [(each.topic, each.id) for each in found] == [(f"over/{n % 2}", n // 2 + 1) for n in range(100)]


def test_an_id_that_is_yet_to_come_is_waited_for(server: GrpcBroker) -> None:
    server.publish("yet")
    call = server.subscribe({"yet": {"id": 3}})
    call.initial_metadata()
    assert [server.publish("yet") for _ in range(3)] == [2, 3, 4]
    found = []
    for answer in call:
        found += [each.id for each in answer.records]
        if len(found) == 2:
            break
    call.cancel()
    assert found == [3, 4]


def test_latest_begins_with_the_initial_metadata(server: GrpcBroker) -> None:
    server.publish("new", b"before")
    call = server.subscribe({"new": LATEST})
    call.initial_metadata()
    server.publish("new", b"after")
    found = next(each for answer in call for each in answer.records)
    call.cancel()
    assert found.payload == b"after"


def test_a_new_topic_is_followed(server: GrpcBroker) -> None:
    call = server.subscribe({"born/#": LATEST})
    call.initial_metadata()
    server.publish("born/now", b"x")
    assert next(each.topic for answer in call for each in answer.records) == "born/now"
    call.cancel()


@pytest.mark.parametrize(
    ("topics", "reason"),
    [({}, "ARGUMENT_INVALID"), ({"a/#/b": {}}, "TOPIC_INVALID"), ({"": {}}, "TOPIC_INVALID"),
     ({"a/+": {"id": 4}}, "ARGUMENT_INVALID"), ({"a": {"id": 0}}, "ARGUMENT_INVALID"),
     ({"a": {"time_us": -1}}, "ARGUMENT_INVALID"), ({"a": {"position": 9}}, "ARGUMENT_INVALID"),
     ({"$share/g/a": {}}, "TOPIC_INVALID"), ({"$log/earliest/a": {}}, "TOPIC_INVALID"),
     ({"$SYS/#": {}}, "TOPIC_INVALID"),
     ({"a\0b": {}}, "TOPIC_INVALID")],
)  # fmt: skip
def test_a_subscription_that_is_none(server: GrpcBroker, topics: dict[str, object], reason: str) -> None:
    with pytest.raises(grpc.RpcError) as failed:
        next(server.subscribe(topics))
    assert fault_of(failed.value)[:2] == (INVALID, reason)


@pytest.mark.parametrize("cursor", ["x", "e30=", "eyJhdCI6eyJhIjotMX19", "ä", "A" * 70_000])
def test_a_cursor_that_is_none(server: GrpcBroker, cursor: str) -> None:
    with pytest.raises(grpc.RpcError) as failed:
        next(server.subscribe({"a": EARLIEST}, cursor=cursor))
    assert fault_of(failed.value)[:2] == (INVALID, "CURSOR_INVALID")


@pytest.mark.parametrize(
    ("fields", "fault"),
    [({"topic": "a/+"}, (INVALID, "TOPIC_INVALID")), ({"topic": ""}, (INVALID, "TOPIC_INVALID")),
     ({"topic": "$SYS/x"}, ("PERMISSION_DENIED", "NOT_AUTHORIZED")),
     ({"topic": "t", "content_type": "a\0"}, (INVALID, "ARGUMENT_INVALID")),
     ({"topic": "t", "correlation_data": b"x" * 70_000}, (INVALID, "ARGUMENT_INVALID"))],
)  # fmt: skip
def test_a_message_that_cannot_be_published(
    server: GrpcBroker, fields: dict[str, object], fault: tuple[str, str]
) -> None:
    request = pb.PublishRequest(message=pb.Message(**fields))
    assert refused(server.stub.Publish, request) == fault


def test_a_refused_message_of_a_stream_ends_nothing(server: GrpcBroker) -> None:
    request = pb.PublishStreamRequest(messages=[message("kept"), message("bad/#"), message("kept"), message("$SYS/a")])
    answers = list(server.stub.PublishStream(iter([request, request]), timeout=SECONDS))
    ids = [each for answer in answers for each in answer.ids]
    assert ids == [1, 0, 2, 0, 3, 0, 4, 0]
    at, refusals = 0, []
    for answer in answers:
        refusals += [(at + each.index, each.reason) for each in answer.refusals]
        at += len(answer.ids)
    broker = "NOT_AUTHORIZED"  # the broker's own answer, after messages that it has taken
    assert refusals == [(1, "TOPIC_INVALID"), (3, broker), (5, "TOPIC_INVALID"), (7, broker)]


def test_topics_are_described_in_pages(server: GrpcBroker) -> None:
    server.publish_all([message(f"described/{n:02}") for n in range(25) for _ in range(n + 1)])
    found, token = [], ""
    while True:
        request = pb.DescribeTopicsRequest(filter="described/#", page_size=10, page_token=token)
        page = server.stub.DescribeTopics(request, timeout=SECONDS)
        found += [(each.topic, each.last_id, each.stream) for each in page.topics]
        token = page.next_page_token
        if not token:
            break
    assert found == [(f"described/{n:02}", n + 1, "main") for n in range(25)]
    for bad in ({"page_size": 1001}, {"page_token": "x"}, {"filter": "a/#/b"}):
        assert refused(server.stub.DescribeTopics, pb.DescribeTopicsRequest(**bad))[0] == INVALID


def test_a_call_past_its_deadline_ends_and_its_work_too(server: GrpcBroker) -> None:
    call = server.stub.Subscribe(pb.SubscribeRequest(topics={"quiet": pb.Start()}), timeout=0.3)
    with pytest.raises(grpc.RpcError) as failed:
        list(call)
    assert failed.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_health_and_reflection(server: GrpcBroker) -> None:
    channel = server.channel()
    health = health_pb2_grpc.HealthStub(channel)
    until = time.monotonic() + SECONDS
    for name in ("", "rumq.v1.BrokerService"):
        while (
            health.Check(health_pb2.HealthCheckRequest(service=name)).status != health_pb2.HealthCheckResponse.SERVING
        ):
            assert time.monotonic() < until
    reflected = ProtoReflectionDescriptorDatabase(channel)
    assert "rumq.v1.BrokerService" in reflected.get_services()
    found = reflected.FindFileContainingSymbol("rumq.v1.BrokerService")
    assert found.service[0].method[0].name == "Publish"
    channel.close()


def test_mqtt_sees_the_same(server: GrpcBroker) -> None:
    """The id is the offset of a replay over MQTT, plus 1."""
    from tests.cli.conftest import rumqd

    assert [server.publish("both", b"%d" % n) for n in range(3)] == [1, 2, 3]
    address: Address = server.process.address
    rumqd("pub", "both", "-m", "from mqtt", "-q", "1", "--port", str(address.port), "--host", address.host)
    found: list[tuple[int, bytes]] = []
    for answer in server.subscribe({"both": {"id": 3}}):
        found += [(each.id, each.payload) for each in answer.records]
        if len(found) == 2:
            break
    assert found == [(3, b"2"), (4, b"from mqtt")]
    from_offset = ("--from", "3", "--count", "1", "--port", str(address.port), "--host", address.host)
    assert rumqd("sub", "both", *from_offset).out == "from mqtt\n"
