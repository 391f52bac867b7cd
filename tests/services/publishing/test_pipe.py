"""The MQTT side of a publishing connection: receive maximum, turns of callers, acknowledgements in order."""

import pytest

from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.packets import Connack, Connect, Disconnect, Puback, Publish
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.services.contract.faults import CallFault
from rumq.services.generated.broker_service_pb2 import Message
from rumq.services.publishing.batch import PublishBatch
from rumq.services.publishing.frames import outgoing
from rumq.services.publishing.pipe import TURN_MESSAGES, PipeBroken, PublishPipe


def opened(receive_maximum: int = 10) -> PublishPipe:
    pipe = PublishPipe("rumq-grpc-1", "anna", 1 << 20)
    connect = packets(pipe.connect())[0]
    assert isinstance(connect, Connect) and (connect.username, connect.password) == ("anna", b"own")
    pipe.receive(encode(Connack(properties=Properties(receive_maximum=receive_maximum)), 5))
    assert pipe.is_open
    return pipe


def packets(data: bytes) -> list[object]:
    reader = FrameReader(version=5)
    reader.receive(data)
    return [decode(first, body, 5) for first, body in reader.frames()]


def batch(topic: str, count: int) -> PublishBatch:
    return PublishBatch([outgoing(Message(topic=topic, payload=b"%d" % n), 1 << 20) for n in range(count)], {})


def sent(pipe: PublishPipe) -> list[tuple[str, bytes, int]]:
    found = packets(b"".join(pipe.take_packets()))
    return [(each.topic, each.payload, each.packet_id or 0) for each in found if isinstance(each, Publish)]


def ack(pipe: PublishPipe, *ids: int, reason: Reason = Reason.SUCCESS) -> None:
    pipe.receive(b"".join(encode(Puback(each, reason), 5) for each in ids))


def test_no_more_is_in_flight_than_the_broker_takes() -> None:
    pipe = opened(3)
    pipe.put("caller", batch("t", 5))
    assert sent(pipe) == [("t", b"0", 1), ("t", b"1", 2), ("t", b"2", 3)]
    assert sent(pipe) == []
    ack(pipe, 1, 2)
    assert sent(pipe) == [("t", b"3", 4), ("t", b"4", 5)]
    ack(pipe, 3, 4, 5)
    assert pipe.is_idle
    assert [(each.topic, each.number) for each in pipe.acknowledged] == [(b"t", n) for n in range(5)]


def test_callers_take_turns() -> None:
    pipe = opened(60_000)
    pipe.put("one", batch("one", 3 * TURN_MESSAGES))
    pipe.put("other", batch("other", 2))
    topics = [topic for topic, _, _ in sent(pipe)]
    assert topics.index("other") == TURN_MESSAGES
    assert len(topics) == 3 * TURN_MESSAGES + 2


def test_packet_ids_begin_again() -> None:
    pipe = opened(60_000)
    for _ in range(3):
        pipe.put("c", batch("t", 30_000))
        found = [packet_id for _, _, packet_id in sent(pipe)]
        assert len(set(found)) == 30_000 and min(found) >= 1 and max(found) <= 65_535
        ack(pipe, *found)


def test_a_refusal_is_of_its_message_alone() -> None:
    pipe = opened()
    both = batch("t", 2)
    pipe.put("c", both)
    sent(pipe)
    pipe.receive(encode(Puback(1, Reason.QUOTA_EXCEEDED, Properties(reason_string="too fast")), 5))
    ack(pipe, 2, reason=Reason.NO_MATCHING_SUBSCRIBERS)
    assert both.refusals[0].reason == "QUOTA_EXCEEDED" and "too fast" in both.refusals[0].detail
    assert [each.number for each in pipe.acknowledged] == [1]
    assert not both.is_done
    both.located(1, 9)
    assert both.is_done and both.ids == [0, 9]


def test_a_batch_that_has_failed_is_not_sent() -> None:
    pipe = opened()
    given_up, other = batch("t", 3), batch("u", 1)
    pipe.put("c", given_up)
    pipe.put("c", other)
    given_up.fail(CallFault("BROKER_AWAY", "cancelled"))
    assert [topic for topic, _, _ in sent(pipe)] == ["u"]


def test_the_end_of_the_connection_is_told_to_all() -> None:
    pipe = opened(1)
    batches = [batch("t", 2), batch("u", 1)]
    for number, each in enumerate(batches):
        pipe.put(number, each)
    sent(pipe)
    with pytest.raises(PipeBroken) as broken:
        pipe.receive(encode(Disconnect(Reason.SERVER_SHUTTING_DOWN), 5))
    pipe.fail(broken.value.fault)
    assert all(each.is_done and each.fault is broken.value.fault for each in batches) and pipe.is_idle


@pytest.mark.parametrize("data", [encode(Puback(7), 5), encode(Connack(reason=Reason.NOT_AUTHORIZED), 5)])
def test_what_a_broker_does_not_send(data: bytes) -> None:
    with pytest.raises(PipeBroken):
        opened().receive(data)


def test_bytes_come_in_any_pieces() -> None:
    pipe = opened()
    pipe.put("c", batch("t", 3))
    sent(pipe)
    data = encode(Puback(1), 5) + encode(Puback(2, Reason.QUOTA_EXCEEDED), 5) + encode(Puback(3), 5)
    for at in range(len(data)):
        pipe.receive(data[at : at + 1])
    assert [each.number for each in pipe.acknowledged] == [0, 2]
