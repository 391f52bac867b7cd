"""An outbox at work: what is published is on disk before `publish` returns, and goes to the broker when there is one.

docs/decisions/0061-the-clients-outbox.md. The files are `outbox_log`, the protocol is `forwarding`."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import trio

from commitlog import Gap
from rumq.client.outbox.forwarding import FIRST_ID, WINDOW_BEFORE_5, Forwarding, RefusedPlace, packet_id_of
from rumq.client.outbox.outbox_errors import OutboxFailed, OutboxFull
from rumq.client.outbox.outbox_log import OutboxLog, OutboxProgress, StoredMessage, run_groups
from rumq.client.outbox.stored_packet import maybe_packet
from rumq.client.session.messages import Outgoing
from rumq.client.session.packet_stream import OUTPUT_BYTES_MAX, PacketStream
from rumq.errors import ClientError, Refused
from rumq.mqtt.packets import Connack, Packet
from rumq.mqtt.reasons import Reason

RETRY_SECONDS = 1.0  # after a temporary refusal of the broker, or a failure of the disk
DIRECT = 16  # of the broker's receive maximum for requests, which do not wait in the outbox
REFUSALS_KEPT = 100


@dataclass(frozen=True, slots=True)
class OutboxOptions:
    """Where a client keeps what it publishes, for `connect(store=...)`.

    path: a directory, of one process at a time
    bytes_max: what its files may take of the disk
    when_full: refuse what is published, or drop the oldest messages, which are counted
    syncs: what is published survives a power loss, too; otherwise the end of the process only
    leave_seconds_max: how long the end of the `connect` context waits until all is forwarded
    """

    path: str
    bytes_max: int = 2**28
    when_full: Literal["refuse", "drop-oldest"] = "refuse"
    syncs: bool = True
    leave_seconds_max: float = 5.0


class ClientOutbox:
    """The outbox of a client, as `Client.outbox`."""

    first_id = FIRST_ID

    def __init__(self, log: OutboxLog, store: OutboxOptions, version: int) -> None:
        self._log, self._store, self._version = log, store, version
        progress = log.progress
        self._state = Forwarding(progress.stored, progress.release, log.next_place)
        self._stream: PacketStream | None = None
        self._read: deque[StoredMessage | Gap] = deque()  # from `Forwarding.sent` on
        self._work, self._changed = trio.Event(), trio.lowlevel.ParkingLot()
        self._disk = trio.Lock()
        self._pause_until = -math.inf  # the broker or the disk could not take something
        self.failure: OutboxFailed | None = None  # the last one of the disk
        self.refusal: ClientError | None = None  # why there will be no connection: a wrong password, for instance
        self.refusals: deque[RefusedPlace] = deque(maxlen=REFUSALS_KEPT)
        self.doubtful = 0  # messages that may be stored twice: the broker had lost the session

    # --- for the application

    @property
    def waiting(self) -> int:
        """Messages that the broker has not confirmed."""
        return self._log.next_place - self._state.stored

    @property
    def bytes(self) -> int:
        """What its files take of the disk."""
        return self._log.bytes

    @property
    def progress(self) -> OutboxProgress:
        """Counts since the outbox was made: dropped, refused, expired, damaged messages."""
        return self._log.progress

    async def wait_empty(self) -> None:
        """Until the broker has confirmed everything. raises: Refused, ConnectionLost where none will be asked"""
        while self.waiting:
            if self.refusal is not None:
                raise self.refusal
            await self._changed.park()

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        """Return once the messages are on disk. All of them are kept, or none.

        raises: OutboxFull, OutboxFailed; ValueError for a message that MQTT cannot say"""
        await trio.lowlevel.checkpoint()
        if not messages:
            return
        try:
            end = self._log.append(messages)
        except OutboxFull:
            end = await self._append_after_making_room(messages)
        failure = self.failure
        self._wake()
        while self._log.kept_place < end:
            await self._changed.park()
            if self.failure is not failure and self.failure is not None and self._log.kept_place < end:
                raise self.failure

    async def _append_after_making_room(self, messages: Sequence[Outgoing]) -> int:
        while True:
            async with self._disk:
                before = self._log.first_place
                await self._remove_oldest(drops=self._store.when_full == "drop-oldest")
            try:
                return self._log.append(messages)
            except OutboxFull:
                if self._log.first_place == before:
                    raise

    async def _remove_oldest(self, *, drops: bool) -> None:
        """Remove the oldest segment: if it is confirmed, or (drops) whatever it has."""
        log, state = self._log, self._state
        if log.oldest_end() == log.first_place and (drops or state.stored == log.next_place):
            await trio.to_thread.run_sync(log.end_segment)
        end = log.oldest_end()
        if drops and state.stored < end:
            count = end - state.stored
            packets = state.dropped(end)
            self._read = deque(each for each in self._read if place_of(each) >= state.sent)
            log.mark(replace(log.progress, stored=end, release=state.release, dropped=log.progress.dropped + count))
            await trio.to_thread.run_sync(log.write)
            self._send_packets(packets)
        await trio.to_thread.run_sync(log.trim)

    # --- for the connection

    def connected(self, stream: PacketStream, connack: Connack) -> int:
        """A connection has begun; returns what is left of the broker's receive maximum for others."""
        properties = connack.properties
        maximum = properties.get("receive_maximum", 65_535 if self._version == 5 else WINDOW_BEFORE_5)
        direct = min(DIRECT, maximum // 2)
        qos = min(2, properties.get("maximum_qos", 2))
        self.doubtful += self._state.connected(
            session_present=connack.session_present, window=maximum - direct, qos=qos
        )
        self._stream = stream
        self._read.clear()
        self._send_packets(self._state.old_packets())
        self._wake()
        return direct

    def lost(self) -> None:
        self._stream = None
        self._state.lost()

    def ended(self, failure: ClientError) -> None:
        """There will be no further connection; what is published is kept for the next process."""
        self.refusal = failure
        self._changed.unpark_all()

    def receive(self, packet: Packet) -> None:
        """An answer with one of our ids."""
        self._send_packets(self._state.receive(packet))
        self._wake()

    def _send_packets(self, packets: Sequence[Packet]) -> None:
        if self._stream is not None:
            for packet in packets:
                self._stream.send(packet)

    def _wake(self) -> None:
        self._work.set()

    # --- the task

    async def run(self) -> None:
        """Write, forward and remove until cancelled."""
        while True:
            self._work = trio.Event()
            while await self._write() or await self._forward():
                pass
            if self._log.can_trim:
                async with self._disk:
                    await trio.to_thread.run_sync(self._log.trim)
            with trio.move_on_at(self._pause_until if self._is_pausing() else math.inf):
                await self._work.wait()

    def _is_pausing(self) -> bool:
        return trio.current_time() < self._pause_until

    async def _write(self) -> bool:
        """What was published and what the broker has confirmed, to disk; returns whether there was anything."""
        if self.failure is not None and self._is_pausing():
            return False
        async with self._disk:
            try:
                marked = self._mark()
                groups = self._log.take_groups()
                if not groups:
                    return False
                await trio.to_thread.run_sync(run_groups, groups)
                self._log.complete(groups)
            except OutboxFailed as failure:
                self.failure = failure
                self._pause_until = trio.current_time() + RETRY_SECONDS
                self._changed.unpark_all()
                return False
            self.failure = None
            if marked is not None:
                self._send_packets(self._state.noted(marked))
        self._changed.unpark_all()
        return True

    def _mark(self) -> int | None:
        """Note what the broker has confirmed; returns up to where, if that has moved."""
        state, progress = self._state, self._log.progress
        if state.received <= state.stored:
            return None
        refused, state.refusals = state.refusals, []
        self.refusals.extend(refused)
        self._log.mark(
            replace(progress, stored=state.received, release=state.release, refused=progress.refused + len(refused))
        )
        return state.received

    async def _forward(self) -> bool:
        """Send what there is room for; returns whether anything was sent or given up."""
        stream, state = self._stream, self._state
        if stream is None or self._is_pausing():
            return False
        if state.waits_to_send_again:
            return await self._send_again(stream)
        room = state.room()
        if not room or not await self._fill():
            return False
        await stream.wait_unsent(OUTPUT_BYTES_MAX)
        now_us = time.time_ns() // 1000
        while room and self._read and stream is self._stream:
            self._send_one(stream, self._read.popleft(), now_us)
            room -= 1
        return True

    async def _fill(self) -> bool:
        """Whether there is a message at `Forwarding.sent` to be sent."""
        place = self._state.sent
        if self._read and place_of(self._read[0]) != place:
            self._read.clear()
        if not self._read:
            self._read.extend(await self._read_from(place))
        # While it was read, the connection may have been another, which begins elsewhere.
        return bool(self._read) and place_of(self._read[0]) == self._state.sent

    async def _read_from(self, place: int) -> list[StoredMessage | Gap]:
        found = self._log.maybe_read(place)
        if found is None:
            async with self._disk:  # nothing is removed meanwhile
                pieces = await trio.to_thread.run_sync(self._log.cold_read(place).run)
            found = self._log.parsed(pieces, place)
        return found

    def _send_one(self, stream: PacketStream, message: StoredMessage | Gap, now_us: int) -> None:
        state, progress = self._state, self._log.progress
        if isinstance(message, Gap):
            self._log.progress = replace(progress, damaged=progress.damaged + message.next_lsn - message.base_lsn)
            state.skip(message.next_lsn)
            return
        packet = maybe_packet(message, self._version, state.qos, now_us)
        if packet is None:
            self._log.progress = replace(progress, expired=progress.expired + 1)
            state.skip(message.place + 1)
            return
        try:
            stream.send_encoded(packet.encoded(packet_id_of(message.place), dup=state.is_repeated))
        except Refused as refusal:  # larger than the broker takes
            self.refusals.append(RefusedPlace(message.place, Reason.PACKET_TOO_LARGE, refusal.reason))
            self._log.progress = replace(progress, refused=progress.refused + 1)
            state.skip(message.place + 1)
            return
        state.note_sent()

    async def _send_again(self, stream: PacketStream) -> bool:
        """Messages that the broker could not take a while ago."""
        if self._pause_until == -math.inf:
            self._pause_until = trio.current_time() + RETRY_SECONDS
            return False
        self._pause_until = -math.inf
        for place in self._state.take_again():
            found = await self._read_from(place)
            if stream is not self._stream:
                break
            for message in found[:1]:
                packet = None if isinstance(message, Gap) else maybe_packet(
                    message, self._version, self._state.qos, 0
                )  # fmt: skip
                if packet is not None:
                    stream.send_encoded(packet.encoded(packet_id_of(place), dup=False))
        return True


def place_of(message: StoredMessage | Gap) -> int:
    return message.base_lsn if isinstance(message, Gap) else message.place
