"""Stores rows exactly once, however often a task or batch is retried: QoS 2 in windows, and a retained progress
marker. docs/decisions/0016-a-sink-that-is-once.md.

MQTT 5.0, 4.3.3: until PUBREL a broker treats another PUBLISH of QoS 2 with the same packet id as the same message, also
on another connection, because the session keeps the id."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace

import numpy as np

from rumq.errors import ConnectionLost, Refused
from rumq.mqtt.packets import (
    Connack,
    Disconnect,
    Packet,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.sink.ack_decoder import PUBACK, PUBREC, PUBREL, Ids, Run, short_packets
from rumq.sink.progress_marker import (
    DONE,
    OPEN,
    STORED,
    ProgressMarker,
    Start,
    start,
)
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
from rumq.sink.sink_protocol import STORED as ID_STORED
from rumq.sink.state_topic import SUBSCRIBE_ID, StateTopic
from rumq.table.errors import BrokerCannot, Doubt, RowsChanged

MARKER_ID = 65_535
RANGE = 32_767  # ids 1 to 32,766 and 32,768 to 65,533, by turns
WINDOW_ROWS_MAX = 32_766
WINDOW_BYTES_MAX = 8 * 2**20

Rows = Generator[Wait, None, "RowWindow"]


@dataclass(slots=True)
class RowWindow:
    """A window of rows. pieces: (frames, first, end); digest: of all rows up to its end"""

    digest: int
    pieces: list[tuple[PublishEncoder, int, int]] = field(default_factory=list)
    rows: int = 0
    size: int = 0


def check_broker(connack: Connack) -> None:
    """raises: BrokerCannot"""
    said = connack.properties
    if said.get("maximum_qos", 2) < 2:
        raise BrokerCannot("does not support QoS 2")
    if not said.get("retain_available", True):
        raise BrokerCannot("does not support retained messages")
    if said.get("session_expiry_interval", 1) == 0:
        raise BrokerCannot("does not keep sessions")
    if said.get("receive_maximum", 65_535) < 2:
        raise BrokerCannot("accepts one message at a time (receive maximum 1)")


class ExactlyOnce(SinkProtocol):
    """Publishes the rows of one partition of one batch on a connection whose session may be an earlier attempt's.

    state_topic: of this query and partition; nonce: unique to this attempt
    repeat_in_doubt: where it is unknown which rows are stored, publish the batch again instead of raising Doubt
    clean_session: this connection discarded the session, after an earlier one found the marker `found`
    clean_start_wanted: set when `step` is done because the session must be discarded: connect again with clean start
    """

    def __init__(
        self, connack: Connack, batch: int, state_topic: str, nonce: str, *,
        repeat_in_doubt: bool = False, clean_session: bool = False, found: ProgressMarker | None = None,
        marker_seconds: int = 0,
    ) -> None:  # fmt: skip
        check_broker(connack)
        self._connack, self._batch = connack, batch
        self._state = StateTopic(state_topic, nonce)
        self._repeat_in_doubt, self._clean_session = repeat_in_doubt, clean_session
        self.found, self._marker_seconds = found, marker_seconds
        self.clean_start_wanted = False
        self.doubt: Doubt | None = None
        self._resumed = False
        self._row = self._digest = self._range = 0
        super().__init__(connack.properties.get("receive_maximum", 65_535))
        self._window_rows = min(self.receive_maximum - 1, WINDOW_ROWS_MAX)  # one is the marker's

    # --- the protocol

    def steps(self) -> Steps:
        yield from self._read_marker()
        begin = self._choose_start()
        if begin is Start.CLEAN:
            self.clean_start_wanted = True
            return
        yield from self._unsubscribe()
        marker = self._state.marker
        if begin is Start.FRESH:
            self._acknowledge_state_messages()
            window = yield from self._gather(self._window_rows)
            yield from self._publish_marker(OPEN, window, release=0)
            yield from self._send_window(window)
            yield from self._windows(window)
        elif marker is not None and begin is Start.NOTHING:
            yield from self._skip_stored_rows(marker, to_the_end=True)
        elif marker is not None:
            yield from self._add_session(marker)
            if begin is Start.GO_ON:
                window = yield from self._resend_window(marker)
                yield from self._windows(window)
            else:
                yield from self._skip_stored_rows(marker, to_the_end=True)
                self._range = marker.range
                yield from self._finish_batch(marker.release)
        self.rows = self._row
        self.send(Disconnect(properties=Properties(session_expiry_interval=0)))

    def _read_marker(self) -> Steps:
        """Read the marker: retained, or published by an earlier attempt's connection just before this one took it over,
        it comes before what is published after the SUBACK."""
        state = self._state
        self.send(Subscribe(SUBSCRIBE_ID, (SubscriptionRequest(state.name, 1),)))
        while state.suback is None:
            yield Wait.PACKETS
        granted = state.suback.reasons[0]
        if granted.is_error:
            says = state.suback.properties.get("reason_string") or granted.text
            raise Refused(f"a subscription to the state topic {state.name}", granted, says)
        if granted != Reason.GRANTED_QOS_1:
            raise BrokerCannot("grants no QoS 1")
        yield from self._publish_state(state.nonce.encode(), retain=False)
        while not state.is_read:
            yield Wait.PACKETS

    def _unsubscribe(self) -> Steps:
        """At UNSUBACK the broker has persisted the delivery of our probe, if it persists deliveries."""
        self.send(Unsubscribe(SUBSCRIBE_ID, (self._state.name,)))
        while self._state.unsuback is None:
            yield Wait.PACKETS

    def _choose_start(self) -> Start:
        """raises: Overtaken, Doubt, ConnectionLost"""
        marker = self._state.marker
        if self._clean_session:
            if marker != self.found:
                raise ConnectionLost("a concurrent attempt at the same rows interfered")
            return Start.FRESH
        self.found = marker
        try:
            present, probes = self._connack.session_present, self._state.probes()
            return start(marker, self._batch, self._state.name, session_present=present, probes=probes)
        except Doubt as doubt:
            if not self._repeat_in_doubt:
                raise
            self.doubt = doubt
            return Start.CLEAN

    def _add_session(self, marker: ProgressMarker) -> Steps:
        """Add our probe to the marker, before those of earlier attempts are acknowledged."""
        known = [probe for probe in self._state.probes() if probe in marker.sessions]
        signed = replace(marker, sessions=(*known, self._state.nonce))
        yield from self._publish_state(signed.payload(), retain=True)
        self._acknowledge_state_messages()

    def _acknowledge_state_messages(self) -> None:
        for packet in self._state.take_unacknowledged():
            self.acknowledge(packet)

    def _windows(self, window: RowWindow) -> Steps:
        """From the first window, which is already being sent, to the last."""
        while True:
            following = yield from self._gather(self._window_rows, behind=window)
            # The next marker requires that all of it is stored, and that the range before it is free.
            while self.unstored_count():
                yield Wait.PACKETS
            self._row, self._digest = self._row + window.rows, window.digest
            self._range ^= 1
            self._resumed = False
            if not following.rows:
                break
            yield from self._publish_marker(OPEN, following, release=window.rows)
            self._release(window.rows)
            yield from self._send_window(following)
            window = following
        yield from self._publish_marker(STORED, following, release=window.rows)
        yield from self._finish_batch(window.rows)

    def _finish_batch(self, release: int) -> Steps:
        self._release(release)
        while self.unacknowledged_count():
            yield Wait.PACKETS
        yield from self._publish_marker(DONE, RowWindow(self._digest), release=0)

    def _resend_window(self, marker: ProgressMarker) -> Generator[Wait, None, RowWindow]:
        """Resend the window of an earlier attempt: stored rows are answered and not stored again."""
        yield from self._skip_stored_rows(marker)
        window = yield from self._gather(marker.end - marker.row, bytes_max=None)
        if window.rows != marker.end - marker.row or window.digest != marker.end_digest:
            yield from self._refuse_changed_rows(marker.row, marker.end)
        if window.rows >= self.receive_maximum:
            raise BrokerCannot(
                f"accepts {self.receive_maximum} messages at a time (receive maximum), fewer than when this batch "
                f"began, which needs {window.rows + 1}"
            )
        self._range, self._resumed = marker.range, True
        self._release(marker.release)
        while self.unacknowledged_count():
            yield Wait.PACKETS
        yield from self._send_window(window)
        return window

    # --- rows

    def _gather(
        self, rows_max: int, *, behind: RowWindow | None = None, bytes_max: int | None = WINDOW_BYTES_MAX
    ) -> Rows:
        """The next rows, at least one if there is one."""
        window = RowWindow(behind.digest if behind is not None else self._digest)
        while window.rows < rows_max and (bytes_max is None or window.size < bytes_max):
            if not self._queue:
                if self._ended:
                    break
                yield Wait.ROWS
                continue
            self._take_rows(window, rows_max, bytes_max)
        return window

    def _take_rows(self, window: RowWindow, rows_max: int, bytes_max: int | None) -> None:
        frames = self._queue.popleft()
        end = min(len(frames), rows_max - window.rows)
        if bytes_max is not None:
            fit = int(np.searchsorted(frames.starts, frames.starts[0] + bytes_max - window.size, "right")) - 1
            end = min(end, max(fit, 1))
        window.digest = frames.digest(0, end, window.digest)
        window.pieces.append((frames, 0, end))
        window.rows += end
        window.size += int(frames.starts[end] - frames.starts[0])
        if end < len(frames):
            self._queue.appendleft(frames.behind(end))

    def _skip_stored_rows(self, marker: ProgressMarker, *, to_the_end: bool = False) -> Steps:
        """Skip stored rows. raises: RowsChanged if their digest differs"""
        while self._row < marker.row:
            window = yield from self._gather(min(marker.row - self._row, WINDOW_ROWS_MAX))
            if not window.rows:
                break
            self._row, self._digest = self._row + window.rows, window.digest
        if to_the_end and (yield from self._gather(1)).rows:
            yield from self._refuse_changed_rows(0, marker.row)
        if self._row != marker.row or self._digest != marker.digest:
            yield from self._refuse_changed_rows(0, marker.row)

    def _refuse_changed_rows(self, first: int, end: int) -> Steps:
        if self._repeat_in_doubt:
            yield from self._publish_state(b"", retain=True)
        raise RowsChanged(self._state.name, self._batch, first, end, self._repeat_in_doubt)

    # --- packets

    def _publish_marker(self, state: str, window: RowWindow, *, release: int) -> Steps:
        """Publish a marker as retained message."""
        end = self._row + window.rows
        marker = ProgressMarker(
            self._batch,
            state,
            self._row,
            end,
            self._range,
            release,
            self._digest,
            window.digest,
            (self._state.nonce,),
        )
        yield from self._publish_state(marker.payload(), retain=True)

    def _publish_state(self, payload: bytes, *, retain: bool) -> Steps:
        properties = Properties()
        if self._marker_seconds and payload:
            properties["message_expiry_interval"] = self._marker_seconds
        self.ack_states[MARKER_ID] = WAITS_PUBACK
        self.send(Publish(self._state.name, payload, 1, retain, False, MARKER_ID, properties))
        while self.ack_states[MARKER_ID] != FREE:
            yield Wait.PACKETS

    def _ids(self, range_: int, first: int, end: int) -> Ids:
        return np.arange(1 + range_ * RANGE + first, 1 + range_ * RANGE + end)

    def _release(self, count: int) -> None:
        """PUBREL for the first ids of the previous range. Ids unknown to the broker are free."""
        if count:
            ids = self._ids(self._range ^ 1, 0, count)
            self.ack_states[ids] = WAITS_PUBCOMP
            self._output.append(short_packets(PUBREL, ids))

    def _send_window(self, window: RowWindow) -> Steps:
        """Send its rows, up to the broker's receive maximum: a row counts until its PUBCOMP. MQTT 5.0, 4.9"""
        place = 0
        for frames, first, end in window.pieces:
            at = first
            while at < end:
                room = self.receive_maximum - 1 - self.unacknowledged_count()
                if room < min(end - at, max(1, self._window_rows // 4)):
                    yield Wait.PACKETS
                    continue
                stop = min(end, at + room)
                ids = self._ids(self._range, place, place + stop - at)
                frames.stamp(at, stop, ids, dup=self._resumed)
                self.ack_states[ids] = WAITS_PUBREC
                self.send_rows(frames, at, stop)
                place, at = place + stop - at, stop

    def unstored_count(self) -> int:
        return self.unacknowledged_count() - int(np.count_nonzero(self.ack_states == ID_STORED))

    def accepts_error(self, head: int, reason: int) -> bool:
        """Some brokers answer "packet id in use" for a row that they have already, which counts as success."""
        in_use = head == PUBREC and reason == Reason.PACKET_IDENTIFIER_IN_USE and self._resumed
        return in_use or super().accepts_error(head, reason)

    def refused_action(self, head: int) -> str:
        if head == PUBACK:
            return f"to publish to the state topic {self._state.name}"
        return super().refused_action(head)

    def on_acknowledged(self, run: Run) -> None:
        self.ack_states[run.ids] = ID_STORED if run.head == PUBREC else FREE

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, Publish) and self._state.is_message(packet):
            if not self._state.keeps(packet):
                self.acknowledge(packet)
        elif not self._state.takes(packet):
            super().on_packet(packet)
