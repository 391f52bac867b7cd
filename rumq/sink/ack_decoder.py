"""Decodes the packets that a broker sends to a publisher, many acknowledgements at a time. MQTT 5.0, 3.4 to 3.7."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rumq.mqtt.decode import decode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Packet, Puback, Pubcomp, Pubrec

PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x62, 0x70
HEADS = (PUBACK, PUBREC, PUBCOMP)
SIZES = {2: 4, 3: 5}  # remaining length -> bytes: without a reason, which is success, and with one

Ids = npt.NDArray[np.int64]


class Run(NamedTuple):
    """Consecutive acknowledgements of one kind. head: first byte; ids, reasons: of each; says: the reason string"""

    head: int
    ids: Ids
    reasons: npt.NDArray[np.uint8]
    says: str = ""


class AckDecoder:
    """Splits received bytes into runs of acknowledgements and other packets."""

    def __init__(self) -> None:
        self._rest = b""

    def receive(self, chunk: bytes) -> Iterator[Run | Packet]:
        """Yield complete packets. raises: MqttFault"""
        data, at = self._rest + chunk, 0
        self._rest = b""
        while at + 2 <= len(data):
            if data[at] in HEADS and data[at + 1] in SIZES:
                if (run := maybe_run(data, at)) is None:
                    break
                at += len(run.ids) * SIZES[data[at + 1]]
                yield run
                continue
            found = frame_at(data, at, len(data), version=5)
            if found is None or at + sum(found) > len(data):
                break
            head, at = data[at], at + sum(found)
            packet = decode(head, data[at - found[1] : at], 5)
            yield run_of(head, packet) if isinstance(packet, Puback | Pubrec | Pubcomp) else packet
        self._rest = data[at:]


def run_of(head: int, packet: Puback | Pubrec | Pubcomp) -> Run:
    says = packet.properties.get("reason_string", "")
    return Run(head, np.array([packet.packet_id]), np.array([packet.reason], np.uint8), says)


def maybe_run(data: bytes, at: int) -> Run | None:
    """The acknowledgements from `at` on with the same head and size; None if the first is incomplete."""
    size = SIZES[data[at + 1]]
    count = (len(data) - at) // size
    if not count:
        return None
    table = np.frombuffer(data, np.uint8, count * size, at).reshape(count, size)
    others = np.flatnonzero((table[:, 0] != data[at]) | (table[:, 1] != data[at + 1]))
    table = table[: others[0]] if others.size else table
    ids = table[:, 2].astype(np.int64) << 8 | table[:, 3]
    return Run(data[at], ids, table[:, 4] if size == 5 else np.zeros(len(ids), np.uint8))


def short_packets(head: int, ids: Ids) -> bytes:
    """PUBREL and the like without a reason, one for each id."""
    table = np.empty((len(ids), 4), np.uint8)
    table[:, 0], table[:, 1] = head, 2
    table[:, 2], table[:, 3] = ids >> 8, ids & 255
    return table.tobytes()
