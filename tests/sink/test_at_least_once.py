"""Rows at QoS 0, 1 and 2, as far as the broker's receive maximum goes. MQTT 5.0, 4.3 and 4.9."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.errors import Refused
from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import ProtocolViolation
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.reasons import Reason
from rumq.sink import publish_encoder
from rumq.sink.at_least_once import AtLeastOnce
from rumq.sink.sink_protocol import Wait


class Broker:
    """Answers some of what it has at a time. log: every message; left: the last packet was a DISCONNECT"""

    def __init__(self, receive_maximum: int, random: Random) -> None:
        self._receive_maximum, self._random = receive_maximum, random
        self._reader = FrameReader(version=5)
        self.log: list[p.Publish] = []
        self.left = False
        self._open: set[int] = set()
        self._answers: list[p.Packet] = []

    def receive(self, chunk: bytes | memoryview) -> None:
        self._reader.receive(chunk)
        for first, body in self._reader.frames():
            assert not self.left
            match packet := decode(first, body, 5):
                case p.Publish():
                    self.log.append(packet)
                    if packet.qos:
                        assert packet.packet_id not in self._open and len(self._open) < self._receive_maximum
                        self._open.add(packet.packet_id or 0)
                        answer = p.Puback if packet.qos == 1 else p.Pubrec
                        self._answers.append(answer(packet.packet_id or 0))
                case p.Pubrel():
                    self._answers.append(p.Pubcomp(packet.packet_id))
                case p.Disconnect():
                    self.left = True
                case _:
                    raise AssertionError(packet)

    def answers(self) -> bytes:
        count = self._random.randint(0, len(self._answers))
        taken, self._answers = self._answers[:count], self._answers[count:]
        self._open -= {each.packet_id for each in taken if isinstance(each, p.Puback | p.Pubcomp)}
        return b"".join(encode(each, 5) for each in taken)

    @property
    def is_at_rest(self) -> bool:
        return not self._open and not self._answers


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 2), max_size=30), max_size=5),
    st.integers(1, 40),
    st.integers(0, 2**32),
    st.integers(1, 65_535),
)
def test_every_row_is_sent_once_in_order_and_answered(
    batches: list[list[int]], receive_maximum: int, seed: int, first_id: int
) -> None:
    broker = Broker(receive_maximum, Random(seed))
    publisher = AtLeastOnce(receive_maximum)
    publisher._next_id = first_id  # ids may come round
    given_ = [[{"topic": "t", "payload": b"%d" % n, "qos": qos} for n, qos in enumerate(batch)] for batch in batches]
    waiting = iter([publish_encoder.encode(pa.RecordBatch.from_pylist(rows)) for rows in given_ if rows])
    while (wait := publisher.step()) is not Wait.DONE:
        for chunk in publisher.output():
            broker.receive(chunk)
        if wait is Wait.ROWS:
            publisher.add_rows(next(waiting, None))
        publisher.receive(broker.answers())
    for chunk in publisher.output():
        broker.receive(chunk)
    assert [(m.payload, m.qos) for m in broker.log] == [(row["payload"], row["qos"]) for rows in given_ for row in rows]
    assert publisher.rows == len(broker.log)
    assert broker.left and broker.is_at_rest


def sending(qos: int) -> AtLeastOnce:
    publisher = AtLeastOnce(10)
    publisher.add_rows(publish_encoder.encode(pa.RecordBatch.from_pylist([{"topic": "t"}]), qos=qos))
    publisher.step()
    return publisher


@pytest.mark.parametrize("answer", [p.Puback(1, Reason.QUOTA_EXCEEDED), p.Disconnect(Reason.SESSION_TAKEN_OVER)])
def test_a_refusal_is_told(answer: p.Packet) -> None:
    with pytest.raises(Refused, match=r"0x97 quota exceeded|0x8E another connection"):
        sending(1).receive(encode(answer, 5))


@pytest.mark.parametrize("answer", [p.Pubrec(1), p.Puback(2), p.Pubcomp(1), p.Pingresp()])
def test_an_answer_to_nothing_is_told(answer: p.Packet) -> None:
    with pytest.raises(ProtocolViolation, match="answers nothing we sent"):
        sending(1).receive(encode(answer, 5))
