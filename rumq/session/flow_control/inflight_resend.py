"""Send again what was in flight when the connection broke, with DUP and the original packet ids. MQTT 5.0, 4.4.

Messages come from the log once more, so they are asked for by lsn; PUBREL needs no log."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from rumq.mqtt import packets as p

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link

WAITS_PUBCOMP = 3


def resend(link: Link) -> deque[tuple[int, int, int]]:
    """Send PUBREL where the client waits for it; returns (packet id, code, lsn) of each PUBLISH to repeat, in order."""
    assert link.session is not None
    window = link.session.window
    if window is None or not window.in_flight:
        return deque()
    wanted: deque[tuple[int, int, int]] = deque()
    for packet_id, state, code, lsn in window.waiting():
        if state == WAITS_PUBCOMP:
            link.send(p.Pubrel(packet_id))
        else:
            wanted.append((packet_id, code, lsn))
    return wanted
