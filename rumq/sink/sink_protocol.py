"""The common part of both protocols of the sink: packets in, packets out, without I/O.

The driver of a protocol calls `step`, sends the output, and waits for the input that `step` names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterator
from enum import Enum
from typing import NoReturn

import numpy as np

from rumq.errors import Refused
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import ProtocolViolation
from rumq.mqtt.packets import Disconnect, Packet, Puback, Publish
from rumq.mqtt.reasons import Reason
from rumq.sink.ack_decoder import PUBACK, PUBCOMP, PUBREC, AckDecoder, Ids, Run
from rumq.sink.publish_encoder import PublishEncoder

ERROR = 0x80  # reasons from here on
# The expected answer of a packet id.
FREE, WAITS_PUBACK, WAITS_PUBREC, STORED, WAITS_PUBCOMP = range(5)
EXPECTED = {PUBACK: WAITS_PUBACK, PUBREC: WAITS_PUBREC, PUBCOMP: WAITS_PUBCOMP}
NAMES = {PUBACK: "PUBACK", PUBREC: "PUBREC", PUBCOMP: "PUBCOMP"}


class Wait(Enum):
    """After the output is sent: ROWS or PACKETS are needed next, or it is done."""

    ROWS = "rows"
    PACKETS = "packets"
    DONE = "done"


Steps = Generator[Wait, None, None]


class SinkProtocol(ABC):
    """Publishes rows. steps: the protocol, which yields its next need

    disconnect_sent: the broker will close once it has everything
    """

    def __init__(self, receive_maximum: int) -> None:
        self.receive_maximum = receive_maximum
        self.ack_states = np.zeros(65_536, np.uint8)
        self.rows = 0
        self.disconnect_sent = False
        self._output: list[bytes | memoryview] = []
        self._decoder = AckDecoder()
        self._queue: deque[PublishEncoder] = deque()
        self._ended = False
        self._steps = self.steps()

    @abstractmethod
    def steps(self) -> Steps:
        """The protocol, from the first row to the last answer."""

    # --- for the driver

    def step(self) -> Wait:
        """Run until the next wait. raises: Refused, and the errors of the protocol"""
        return next(self._steps, Wait.DONE)

    def output(self) -> Iterator[bytes | memoryview]:
        """Bytes to send, each once."""
        taken, self._output = self._output, []
        yield from taken

    def add_rows(self, frames: PublishEncoder | None) -> None:
        """Rows to publish, in order; None at the end."""
        if frames is None:
            self._ended = True
        elif len(frames):
            self._queue.append(frames)

    def receive(self, chunk: bytes) -> None:
        """Bytes from the broker, in pieces of any size. raises: MqttFault, Refused"""
        for found in self._decoder.receive(chunk):
            if isinstance(found, Run):
                self._check(found)
                self.on_acknowledged(found)
            elif isinstance(found, Disconnect):
                says = found.properties.get("reason_string") or found.reason.text
                raise Refused("to go on", found.reason, says)
            else:
                self.on_packet(found)

    # --- for protocols

    @abstractmethod
    def on_acknowledged(self, run: Run) -> None:
        """Expected acknowledgements without an error."""

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, Publish) and packet.qos < 2:
            self.acknowledge(packet)  # of the session before this connection
            return
        self.unexpected(type(packet).__name__.upper())

    def accepts_error(self, head: int, reason: int) -> bool:
        """Whether an answer with this error counts as success."""
        return head == PUBCOMP and reason == Reason.PACKET_IDENTIFIER_NOT_FOUND

    def refused_action(self, head: int) -> str:
        """Fail with the error of an acknowledgement of this kind."""
        return "to publish a row"

    def send(self, packet: Packet) -> None:
        self._output.append(encode(packet, 5))
        self.disconnect_sent = isinstance(packet, Disconnect)

    def send_rows(self, frames: PublishEncoder, first: int, end: int) -> None:
        self._output.append(frames.bytes_of(first, end))

    def acknowledge(self, packet: Publish) -> None:
        if packet.packet_id is not None:
            self.send(Puback(packet.packet_id))

    def unacknowledged_count(self) -> int:
        return int(np.count_nonzero(self.ack_states))

    def unexpected(self, what: str) -> NoReturn:
        raise ProtocolViolation(f"the broker sent {what}, which answers nothing we sent")

    def _check(self, run: Run) -> None:
        for reason in set(run.reasons[run.reasons >= ERROR].tolist()):
            if not self.accepts_error(run.head, reason):
                raise Refused(self.refused_action(run.head), reason, run.says or Reason(reason).text)
        if np.any(self.ack_states[run.ids] != EXPECTED[run.head]):
            self.unexpected(f"{NAMES[run.head]} {first_other(self.ack_states, run)}")


def first_other(ack_states: np.ndarray[tuple[int], np.dtype[np.uint8]], run: Run) -> int:
    ids: Ids = run.ids[ack_states[run.ids] != EXPECTED[run.head]]
    return int(ids[0])
