"""Rows at QoS 0, 1 or 2 with acknowledgements: at least once, because tasks are retried. MQTT 5.0, 4.3."""

from __future__ import annotations

import numpy as np

from rumq.mqtt.packets import Disconnect
from rumq.sink.ack_decoder import PUBREC, PUBREL, Ids, Run, short_packets
from rumq.sink.publish_encoder import PublishEncoder
from rumq.sink.sink_protocol import (
    FREE,
    WAITS_PUBACK,
    WAITS_PUBCOMP,
    WAITS_PUBREC,
    SinkProtocol,
    Steps,
    Wait,
)

LAST_ID = 65_535


class AtLeastOnce(SinkProtocol):
    """Sends further rows while acknowledgements are pending, up to the broker's receive maximum."""

    def __init__(self, receive_maximum: int) -> None:
        super().__init__(receive_maximum)
        self._next_id = 1

    def steps(self) -> Steps:
        while not self._ended or self._queue:
            if not self._queue:
                yield Wait.ROWS
                continue
            yield from self._publish(self._queue.popleft())
        while self.unacknowledged_count():
            yield Wait.PACKETS
        self.send(Disconnect())

    def _publish(self, frames: PublishEncoder) -> Steps:
        numbered = np.concatenate(([0], np.cumsum(frames.qos > 0)))  # rows with a packet id before each row
        at = 0
        while at < len(frames):
            left = int(numbered[-1] - numbered[at])
            free = self._free_ids(left)
            # A few rows at a time would cost one network packet each.
            if len(free) < min(left, max(1, self.receive_maximum // 4)):
                yield Wait.PACKETS
                continue
            end = int(np.searchsorted(numbered, numbered[at] + len(free), "right")) - 1
            self._send(frames, at, end, free[: int(numbered[end] - numbered[at])])
            at = end
        self.rows += len(frames)

    def _send(self, frames: PublishEncoder, first: int, end: int, ids: Ids) -> None:
        levels = frames.qos[first:end]
        frames.stamp(first, end, ids)
        self.ack_states[ids] = np.where(levels[levels > 0] == 1, WAITS_PUBACK, WAITS_PUBREC)
        if ids.size:
            self._next_id = int(ids[-1]) % LAST_ID + 1
        self.send_rows(frames, first, end)

    def _free_ids(self, wanted: int) -> Ids:
        """Free ids in order, up to the broker's receive maximum."""
        count = min(wanted, self.receive_maximum - self.unacknowledged_count())
        ids = (self._next_id - 1 + np.arange(max(count, 0))) % LAST_ID + 1
        taken = np.flatnonzero(self.ack_states[ids] != FREE)
        return ids[: taken[0]] if taken.size else ids

    def on_acknowledged(self, run: Run) -> None:
        if run.head == PUBREC:
            self.ack_states[run.ids] = WAITS_PUBCOMP
            self._output.append(short_packets(PUBREL, run.ids))
        else:
            self.ack_states[run.ids] = FREE
