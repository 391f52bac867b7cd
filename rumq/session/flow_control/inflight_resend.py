"""Redelivery of the in-flight window on reconnect, with DUP and the original packet ids. MQTT 5.0, 4.4.

PUBREL is sent at once. Messages are read from the log again, so they are returned by lsn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rumq.mqtt.kernels.window import Window
from rumq.mqtt.packets import Pubrel

WAITS_PUBCOMP = 3


def resend(window: Window | None, send: Callable[[Pubrel], None]) -> deque[tuple[int, int, int]]:
    """Send PUBREL where PUBCOMP is missing; returns (packet id, code, lsn) of each PUBLISH to send again, in order."""
    unsent: deque[tuple[int, int, int]] = deque()
    if window is not None and window.in_flight:
        for packet_id, state, code, lsn in window.waiting():
            if state == WAITS_PUBCOMP:
                send(Pubrel(packet_id))
            else:
                unsent.append((packet_id, code, lsn))
    return unsent
