"""The MQTT side of one connection that only publishes: packets out, acknowledgements in. MQTT 5.0, 3.1 to 3.4, 4.9.

As many messages are unacknowledged as the broker's receive maximum allows; the others wait here, callers in turn. No
sockets, no tasks."""

from __future__ import annotations

from collections import OrderedDict, deque

from rumq.auth.credentials.vouched import OWN_PASSWORD
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Connack, Connect, Disconnect, Packet, Puback
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.services.contract.faults import CallFault
from rumq.services.publishing.batch import PublishBatch
from rumq.services.publishing.places import AcknowledgedPublish

VERSION = 5
PACKET_IDS = 0xFFFF
PUBACK = 0x40
TURN_MESSAGES = 256  # of one caller, before the next has its turn
SHORT_PUBACK_BYTES = 4


class PipeBroken(Exception):
    """The broker has refused or ended the connection. fault: for those whose messages are not answered"""

    def __init__(self, fault: CallFault) -> None:
        super().__init__(fault)
        self.fault = fault


class PublishPipe:
    """is_open: the broker has accepted the connection; packet_bytes_max: it takes"""

    def __init__(self, client_id: str, user: str | None, packet_bytes_max: int) -> None:
        self.client_id = client_id
        self._user = user
        self.is_open = False
        self.packet_bytes_max = packet_bytes_max
        self._receive_maximum = PACKET_IDS
        self._received = bytearray()
        self._packet_id = 0
        self._sent: deque[tuple[int, PublishBatch, int]] = deque()  # packet id, batch, number in it, as they were sent
        self._waiting: OrderedDict[object, deque[tuple[PublishBatch, int]]] = (
            OrderedDict()
        )  # by caller: batch, next one
        self.acknowledged: list[AcknowledgedPublish] = []  # since they were taken: of messages that are in the log

    def connect(self) -> bytes:
        properties = Properties(request_problem_information=True)
        return encode(Connect(self.client_id, VERSION, True, 0, self._user, OWN_PASSWORD, None, properties), VERSION)

    def put(self, caller: object, batch: PublishBatch) -> None:
        """Let a batch wait for its turn among those of all callers; those of one caller stay in order."""
        self._waiting.setdefault(caller, deque()).append((batch, 0))

    @property
    def is_idle(self) -> bool:
        return not self._sent and not self._waiting

    def take_packets(self) -> list[bytes]:
        """PUBLISH packets that may be sent now, to be joined."""
        out: list[bytes] = []
        while self._waiting and len(self._sent) < self._receive_maximum:
            caller, batches = next(iter(self._waiting.items()))
            self._waiting.move_to_end(caller)
            room = min(TURN_MESSAGES, self._receive_maximum - len(self._sent))
            while batches and room > 0:
                batch, number = batches.popleft()
                room, number = self._send(batch, number, room, out)
                if number < len(batch.messages):
                    batches.appendleft((batch, number))
            if not batches:
                del self._waiting[caller]
        return out

    def _send(self, batch: PublishBatch, number: int, room: int, out: list[bytes]) -> tuple[int, int]:
        """Send some of a batch; returns the room left, and the next number."""
        packet_id, sent = self._packet_id, self._sent
        messages = batch.messages
        while number < len(messages) and room:
            message = messages[number]
            if message is not None and not batch.is_done:
                packet_id = packet_id % PACKET_IDS + 1
                out += (message.head, packet_id.to_bytes(2, "big"), message.tail)
                sent.append((packet_id, batch, number))
                room -= 1
            number += 1
        self._packet_id = packet_id
        return room, number

    def receive(self, data: bytes) -> None:
        """raises: PipeBroken when the broker ends the connection, or answers what it was not sent"""
        received = self._received
        received += data
        at, end = 0, len(received)
        while at < end:
            # Nearly all there is: a PUBACK without a reason code.
            if received[at] == PUBACK and at + SHORT_PUBACK_BYTES <= end and received[at + 1] == 2:
                self._answered(received[at + 2] << 8 | received[at + 3], Reason.SUCCESS, "")
                at += SHORT_PUBACK_BYTES
                continue
            lengths = frame_at(received, at, end, version=VERSION)
            if lengths is None or at + sum(lengths) > end:
                break
            first, body = received[at], bytes(received[at + lengths[0] : at + sum(lengths)])
            at += sum(lengths)
            self._packet(decode(first, body, VERSION))
        del received[:at]

    def _packet(self, packet: Packet) -> None:
        match packet:
            case Puback():
                self._answered(packet.packet_id, packet.reason, packet.properties.get("reason_string", ""))
            case Connack():
                if packet.reason.is_error:
                    raise PipeBroken(refusal(packet))
                self._receive_maximum = min(packet.properties.get("receive_maximum", PACKET_IDS), PACKET_IDS - 1)
                self.packet_bytes_max = packet.properties.get("maximum_packet_size", self.packet_bytes_max)
                self.is_open = True
            case Disconnect():
                said = packet.properties.get("reason_string") or packet.reason.text
                raise PipeBroken(CallFault("BROKER_AWAY", f"the broker ended the connection: {said}"))
            case _:
                raise PipeBroken(CallFault("INTERNAL", f"a broker does not send {type(packet).__name__.upper()} here"))

    def _answered(self, packet_id: int, reason: Reason, why: str) -> None:
        """The next message in the order of sending. [MQTT-4.6.0-2]"""
        if not self._sent or self._sent[0][0] != packet_id:
            raise PipeBroken(CallFault("INTERNAL", f"PUBACK {packet_id} is not the next one"))
        _, batch, number = self._sent.popleft()
        if reason.is_error:
            batch.refused(number, reason, why)
            return
        batch.acknowledged()
        message = batch.messages[number]
        assert message is not None
        self.acknowledged.append(AcknowledgedPublish(message.topic, batch, number))

    def fail(self, fault: CallFault) -> None:
        """Of every message that is not answered."""
        for _, batch, _ in self._sent:
            batch.fail(fault)
        for batches in self._waiting.values():
            for batch, _ in batches:
                batch.fail(fault)
        self._sent.clear()
        self._waiting.clear()


def refusal(packet: Connack) -> CallFault:
    said = packet.properties.get("reason_string") or packet.reason.text
    kind = {
        Reason.NOT_AUTHORIZED: "NOT_AUTHORIZED",
        Reason.BANNED: "NOT_AUTHORIZED",
        Reason.QUOTA_EXCEEDED: "QUOTA_EXCEEDED",
    }.get(packet.reason, "BROKER_AWAY")
    return CallFault(kind, f"the broker refuses this user: {said}", mqtt_reason=int(packet.reason))
