"""Both directions of a link: bytes of either side in, bytes for both sides out. No I/O, no clock.

Runs of ordinary packets are relayed by the kernel; each other one is decoded, and decided on by its `PacketRelay`.
Messages wait in `paced` for the bandwidth, or for a target that takes no further one before PUBREL, which comes behind
them. PUBREL and other answers pass messages that wait: PUBLISH, PUBREC and PUBREL have an order each, MQTT 5.0, 4.6,
and a source sends PUBREL for a message only once that one was answered, so it passes none with its own id."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from rumq.bridge.kernels.relay_run import RelayRun
from rumq.bridge.relay import Moves, PacketRelay, held_bytes
from rumq.bridge.side import KEPT_BYTES_MAX, OTHER, SIDES, check_goes_on
from rumq.errors import ConnectionLost
from rumq.mqtt.decode import decode
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.packets import Packet, Puback, Pubcomp, Publish, Pubrec, Pubrel

ANSWER_BYTES = 4
COLLECTED_BYTES_MIN = 2**22
PROPERTIES_BYTES = 2**18
HELD_BYTES_MAX = 2**22  # of messages before which PUBREL is looked for, while the target may also answer of itself
QOS_0_BYTES_MAX = 2**20  # waiting for a target: above it QoS 0 is dropped, so that the rest does not wait for it


class SideOutput(Protocol):
    """A side's connection, as far as sending goes: a `PacketStream`."""

    @property
    def unsent_bytes(self) -> int: ...

    def send(self, packet: Packet) -> None: ...

    def send_packets(self, encoded: bytes) -> None: ...


class TwoWayRelay:
    """relays: by their source; is_paced: all messages wait in `paced`, until somebody moves them.

    by_runs: False: each packet is decoded, which is the oracle of runs"""

    def __init__(
        self, relays: dict[str, PacketRelay], outputs: dict[str, SideOutput], *, is_paced: bool = False,
        by_runs: bool = True,
    ) -> None:  # fmt: skip
        self._relays, self._outputs, self._is_paced = relays, outputs, is_paced
        self._runs: dict[str, RelayRun] = {}
        if by_runs and not is_paced:
            self._runs = {side: relays[side].run(relays[OTHER[side]]) for side in SIDES}
        self._versions = {side: relays[OTHER[side]].target_version for side in SIDES}
        self._unfinished = {side: bytearray() for side in SIDES}  # the beginning of a packet
        # Larger ones are not collected; what an MQTT 5 source sends may lose its properties on the way.
        self._collected_max = {
            side: max(relays[side].target_packet_bytes_max, COLLECTED_BYTES_MIN) + PROPERTIES_BYTES for side in SIDES
        }
        self._left_out = dict.fromkeys(SIDES, 0)  # bytes that are still to come of a packet that is refused
        self._is_full = dict.fromkeys(SIDES, False)
        self.paced: dict[str, deque[Publish]] = {side: deque() for side in SIDES}  # by the source
        self.paced_bytes = dict.fromkeys(SIDES, 0)
        self.answered_bytes = dict.fromkeys(SIDES, 0)  # of answers to messages of a side, since somebody set it to 0

    def receive(self, side: str, chunk: bytes) -> None:
        """Also what waited for an answer that this has. raises: ConnectionLost, Refused for DISCONNECT; behind the
        packets before it"""
        self._receive(side, chunk)
        while (other := next(filter(self._may_go_on, SIDES), None)) is not None:
            self._receive(other, b"")

    def is_full(self, source: str) -> bool:
        """Whether a message of this side waits until the target has answered another one."""
        return self._is_full[source]

    def may_read_on(self, source: str) -> bool:
        """Whether messages that the target does not take yet are held to find the source's PUBREL behind them."""
        relay = self._relays[source]
        return relay.waits_for_pubrel and (self.paced_bytes[source] <= HELD_BYTES_MAX or relay.waits_for_nothing_else)

    def _may_go_on(self, source: str) -> bool:
        if self._is_full[source] and (not self._relays[source].is_full or self.may_read_on(source)):
            return True
        return not self._is_paced and self._can_move(source)

    def _can_move(self, source: str) -> bool:
        waiting = self.paced[source]
        return bool(waiting) and self._relays[source].has_room(waiting[0])

    def _has_to_wait(self, source: str, packet: Publish) -> bool:
        """Behind others that wait, or because the target is full. What it has already was before them."""
        if self._is_paced:
            return True
        relay = self._relays[source]
        return not relay.is_on_way(packet) and (bool(self.paced[source]) or not relay.has_room(packet))

    def _receive(self, side: str, chunk: bytes) -> None:
        self._is_full[side] = False
        if left := self._left_out[side]:
            self._left_out[side] = max(0, left - len(chunk))
            chunk = chunk[left:]
        buffer, version = self._unfinished[side], self._versions[side]
        buffer += chunk
        at = 0
        try:
            while True:
                while not self._is_paced and self._can_move(side):
                    self.move_paced(side)
                at = self._relay_run(side, buffer, at)
                if (lengths := frame_at(buffer, at, len(buffer), version=version)) is None:
                    break
                header_len, body_len = lengths
                body_at = at + header_len
                if body_at + body_len > len(buffer):
                    if header_len + body_len > self._collected_max[side]:
                        at = self._leave_out(side, at, body_at, body_len)
                    break
                packet = decode(buffer[at], bytes(buffer[body_at : body_at + body_len]), version)
                if isinstance(packet, Publish) and not self._may_take(side, packet):
                    self._is_full[side] = True
                    break
                at = body_at + body_len
                check_goes_on(packet)
                self.take(side, packet)
        except MqttFault as fault:
            raise ConnectionLost(f"the broker broke the protocol: {fault}") from fault
        finally:
            del buffer[:at]
            for relay in self._relays.values():
                relay.count_taken()

    def _may_take(self, side: str, packet: Publish) -> bool:
        return self._is_paced or not self._has_to_wait(side, packet) or self.may_read_on(side)

    def _leave_out(self, side: str, at: int, body_at: int, body_len: int) -> int:
        """Refuse a message that is too large for its target once its topic and packet id are there, and drop its bytes
        as they come; returns where the buffer goes on. raises: MqttFault for another packet, which is never so large"""
        buffer = self._unfinished[side]
        if buffer[at] >> 4 != PacketType.PUBLISH:
            raise ProtocolViolation(f"a packet of {body_len} bytes that is no PUBLISH")
        head_end = body_at + 2
        if len(buffer) >= head_end:
            head_end += int.from_bytes(buffer[body_at:head_end], "big") + (2 if buffer[at] & 6 else 0)
        if len(buffer) < head_end:
            return at
        # As of MQTT 3.1.1, whose messages have no properties.
        message = decode(buffer[at], bytes(buffer[body_at:head_end]), 4)
        assert isinstance(message, Publish)
        self._left_out[side] = body_at + body_len - len(buffer)
        self._move(side, self._relays[side].refuse_large(message, body_at - at + body_len))
        return len(buffer)

    def _relay_run(self, side: str, buffer: bytearray, at: int) -> int:
        if (run := self._runs.get(side)) is None or self.paced[side]:
            return at
        output = self._outputs[OTHER[side]]
        at, made = run.relay(buffer, at, len(buffer), QOS_0_BYTES_MAX - output.unsent_bytes)
        if made:
            output.send_packets(made)
        return at

    def take(self, side: str, packet: Packet) -> None:
        """One packet of a side."""
        if isinstance(packet, Publish):
            if packet.qos == 0 and self.waiting_bytes(side) > QOS_0_BYTES_MAX:
                self._relays[side].note_dropped()
            elif self._has_to_wait(side, packet):
                if self.paced_bytes[side] > KEPT_BYTES_MAX and self._relays[side].waits_for_nothing_else:
                    raise ConnectionLost(f"the {side} broker sent {self.paced_bytes[side] >> 20} MiB before PUBREL")
                self.paced[side].append(packet)
                self.paced_bytes[side] += held_bytes(packet)
            else:
                self._move(side, self._relays[side].publish(packet))
        elif isinstance(packet, Pubrel):
            self._move(side, self._relays[side].pubrel(packet))
        elif isinstance(packet, Puback | Pubrec | Pubcomp):
            self._move(OTHER[side], self._relays[OTHER[side]].answer(packet))

    def waiting_bytes(self, source: str) -> int:
        return self.paced_bytes[source] + self._outputs[OTHER[source]].unsent_bytes

    def has_paced(self, source: str) -> bool:
        """Whether `move_paced` has something to move that the target takes now."""
        waiting = self.paced[source]
        self._is_full[source] = bool(waiting) and not self._relays[source].has_room(waiting[0])
        return bool(waiting) and not self._is_full[source]

    def move_paced(self, source: str) -> int:
        """Relay the first message that waits; returns the bytes of its payload."""
        packet = self.paced[source].popleft()
        self.paced_bytes[source] -= held_bytes(packet)
        self._move(source, self._relays[source].publish(packet))
        self._relays[source].count_taken()
        return len(packet.payload)

    def send_again(self, source: str) -> None:
        """What the target refused for now."""
        self._move(source, Moves([], self._relays[source].take_again()))

    def _move(self, source: str, moves: Moves) -> None:
        for packet in moves.to_target:
            self._outputs[OTHER[source]].send(packet)
        self.answered_bytes[source] += ANSWER_BYTES * len(moves.to_source)
        for packet in moves.to_source:
            self._outputs[source].send(packet)
