"""Flow control from the log to one client: the outbox, the in-flight window and packet ids. MQTT 5.0, 4.9.

The log is the queue: messages that fit into neither outbox nor window are not stored here. `Blocked` reports the lsn to
go on from, and they are read again when there is room."""
# compiled: hot

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from router.commands import Blocked, CommandQueue
from router.effects import ChunkRows, Deliver
from router.readers.reader import Reader
from router.readers.slots import PARTITION_BITS, RETAINED_CODE
from rumq.mqtt.kernels import fanout
from rumq.mqtt.kernels.window import Window
from rumq.session.flow_control.replay_throttle import ReplayThrottle
from rumq.session.ports.transport import Outbox

PIECE_BYTES = 1 << 16  # copied at a time of a blob that gets packet ids


class RetainedPieces(Protocol):
    """Retained messages for one client, looked up piece by piece: `rumq.shards.delivery.retained_delivery`."""

    over: bool

    def piece(self) -> tuple[fanout.Blob, int, int] | None: ...

    def taken(self, stop: int) -> None: ...


class WindowOwner(Protocol):
    """The session that the in-flight window is kept in. window: None until it is needed"""

    window: Window | None

    def open_window(self, limit: int) -> Window:
        """Its window, made if there is none. limit: how many messages may be in flight"""


class DurableSender(Protocol):
    """Journals the packet ids of a durable session's messages, and sends these."""

    def sent(self, window: Window, code: int, first: int, data: bytes | bytearray | memoryview) -> None: ...


class DeliveryWindow:
    """The sink of one connected session.

    aliases: partition << 32 | topic id -> topic alias that the client has been sent; delivered: messages
    window_full: messages wait for credit; waits: they wait for an answer that the journal does not have yet"""

    __slots__ = (
        "_commands", "_durable", "_owner", "aliases", "delivered", "is_open", "meter", "outbox", "retained",
        "waits", "window", "window_full", "window_limit",
    )  # fmt: skip

    def __init__(
        self, outbox: Outbox, owner: WindowOwner, window_limit: int, commands: CommandQueue,
        durable: DurableSender | None = None,
    ) -> None:  # fmt: skip
        """owner: is asked for a window at the first message of QoS 1 or 2, of `window_limit` messages

        durable: of a session that outlives the broker"""
        self.outbox = outbox
        self.window = owner.window
        self.retained: deque[RetainedPieces] | None = None
        self.aliases: dict[int, int] | None = None
        self.window_full = False
        self.is_open = True
        self.meter: ReplayThrottle | None = None
        self.delivered = 0
        self.waits = False
        self._durable = durable
        self._owner, self.window_limit = owner, window_limit
        self._commands = commands

    def takes(self, effect: ChunkRows, reader: Reader) -> bool:
        """Whether the client can take anything now; if not, all of it is offered again."""
        partition = effect.partition
        if self.is_open and reader.refused and reader.refused >> partition & 1 and reader.share is None:
            return False  # earlier rows of this step were not taken: it comes again, after them
        # A client that has left in this very step: its session still gets the rows later.
        is_spent = self.meter is not None and self.is_spent_for(reader)
        if self.is_open and not (self.waits or self.retained or self.outbox.room <= 0 or is_spent):
            return True
        if self.is_open and not self.waits and (self.retained or self.outbox.room <= 0):
            self.outbox.refused = True
        self._commands.put(Blocked(reader, partition, effect.chunk.base_lsn + effect.first))
        return False

    def offer(self, effect: ChunkRows, reader: Reader, blob: fanout.Blob) -> int:
        """Take as much of a blob as fits, from row `effect.first` up to `effect.stop`.

        returns: the row below which nothing comes again"""
        if not self.takes(effect, reader):
            return effect.first
        partition, chunk = effect.partition, effect.chunk
        base = blob.base_lsn
        first = blob.first_at_or_after(base + effect.first) if effect.first else 0
        count = blob.count if effect.stop == chunk.count else blob.first_at_or_after(base + effect.stop)
        if first >= count:
            return effect.stop
        if reader.redelivered_below is not None and base + effect.first < reader.redelivered_below[partition]:
            taken = self._redeliver(reader, partition, blob, first, count)
            return effect.stop if taken == count else int(blob.lsn(taken) - base)
        if not blob.qos_count:
            data: Any = blob.data if first == 0 and count == blob.count else blob.part(first, count)
            # A share's part is not cut back: the share would not know where it ends.
            owner = (self, reader, partition, blob, first, count, effect.stop) if reader.share is None else None
            self.outbox.write(data, owner)
            self.delivered += count - first
            if self.meter is not None:
                self._spend(reader, count - first, len(data))
            return effect.stop
        number = reader.number
        taken = self.number(blob, first, count, number << PARTITION_BITS | partition)
        if self.meter is not None:
            self._spend(reader, taken - first, blob.start(taken) - blob.start(first))
        if taken == count:
            return effect.stop
        lsn = blob.lsn(taken)
        self._refuse(reader, partition, lsn)
        return int(lsn - base)

    def close(self) -> None:
        """The client has left: the session gets later what is offered from now on."""
        self.is_open = False
        # Each refers back here: without these cycles the window is freed at once, not by the collector.
        self._durable = self.meter = self.retained = None

    def is_spent_for(self, reader: Reader) -> bool:
        """Whether a replay waits for its token buckets; the throttle resumes it."""
        return self.meter is not None and self.meter.is_spent and reader.group.wants.committed_only

    def _spend(self, reader: Reader, messages: int, size: int) -> None:
        if self.meter is not None and reader.group.wants.committed_only:
            self.meter.spend(messages, size)

    def _refuse(self, reader: Reader, partition: int, lsn: int) -> None:
        """Have everything from `lsn` on offered again; later rows of this step, even of QoS 0, do not overtake it."""
        reader.refused |= 1 << partition
        self._commands.put(Blocked(reader, partition, lsn))

    def _redeliver(self, reader: Reader, partition: int, blob: fanout.Blob, first: int, count: int) -> int:
        """Take messages that the client may have had before a crash: QoS 1 and 2 with DUP, QoS 0 not again.

        Consecutive frames of QoS 1 and 2 are taken together: each piece may wait for the journal.

        returns: the first frame not taken"""
        assert reader.redelivered_below is not None
        redelivered_below, code = (
            reader.redelivered_below[partition],
            reader.number << PARTITION_BITS | partition,
        )
        while first < count:
            stop = fanout.run_stop(blob, first, count)
            if blob.data[blob.start(first)] & 6:
                taken = first if self.waits else self.number(blob, first, stop, code, redelivered_below)
                if taken < stop:
                    self._refuse(reader, partition, blob.lsn(taken))
                    return taken
            elif (fresh := max(first, blob.first_at_or_after(redelivered_below))) < stop:
                self.outbox.write(blob.part(fresh, stop))
                self.delivered += stop - fresh
            first = stop
        return count

    def number(self, blob: fanout.Blob, first: int, count: int, code: int, dup_below: int = 0) -> int:
        """Send frames first..count with packet ids of this session; returns the first one not sent.

        dup_below: as of `fanout.number`"""
        window = self.window
        if window is None:
            window = self.window = self._owner.open_window(self.window_limit)
        while first < count:
            if self.outbox.room <= 0:
                self.outbox.refused = True
                return first
            if self.waits:
                return first
            before = window.next
            data, after = fanout.number(window, blob, first, count, code, PIECE_BYTES, dup_below)
            if after == first:
                self.window_full = True
                return first
            if self._durable is not None and window.next != before:
                self._durable.sent(window, code, before, data)
            else:
                self.outbox.write(data)
            self.delivered += after - first
            first = after
        return first

    def credit(self) -> int:
        """How many messages of QoS 1 and 2 may be sent now."""
        if self.window is None:
            self.window = self._owner.open_window(self.window_limit)
        return int(self.window.credit())

    def rows_max(self, effect: Deliver, reader: Reader, first: int, *, numbered: bool) -> int:
        """How many rows from `first` on may be built for this client alone; 0: none, they are offered again.

        numbered: messages of QoS 1 or 2 may be among them"""
        credit = effect.stop - first
        if numbered:
            credit = min(credit, self.credit())
            if credit == 0:
                self.window_full = True
        is_spent = self.meter is not None and self.is_spent_for(reader)
        if credit == 0 or self.waits or self.retained or self.outbox.room <= 0 or is_spent:
            if not self.waits and (self.retained or self.outbox.room <= 0):
                self.outbox.refused = True  # only set: another reader of the client may wait for room
            self._refuse(reader, effect.partition, effect.chunk.base_lsn + first)
            return 0
        return int(credit)

    def send_own(self, reader: Reader, partition: int, blob: fanout.Blob) -> None:
        """Send a blob that was built for this client alone, with topic aliases, within `rows_max`."""
        if blob.qos_count:
            self.number(blob, 0, blob.count, reader.number << PARTITION_BITS | partition)
        elif blob.count:
            self.outbox.write(blob.data)
            self.delivered += blob.count
        if self.meter is not None:
            self._spend(reader, blob.count, len(blob.data))

    def cut_at(self, owned: tuple[Any, ...], sent: int) -> int:
        """The bytes of a blob to keep in the outbox, up to the end of a frame, when the socket took only `sent`.

        The rest is read from the log again. owned: the owner that `offer` gave `Outbox.write`"""
        _, reader, partition, blob, first, count, stop = owned
        begin = blob.start(first)
        frame = min(blob.frame_after(begin + sent), count)
        if frame < count:
            self.delivered -= count - frame
            lsn = blob.lsn(frame)
            self._commands.put(Blocked(reader, partition, lsn))
            if blob.expired or blob.too_large:
                # Those after it have been counted: they are not counted again when they come again.
                left_out = [blob.base_lsn + row for row in (*blob.expired, *blob.too_large) if row < stop]
                reader.counted = reader.counted or set()
                reader.counted.update((partition, at) for at in left_out if at > lsn)
        return int(blob.start(frame) - begin)

    def offer_retained(self, pieces: RetainedPieces) -> bool:
        """Take retained messages; while some wait for room or credit, no other messages are taken.

        returns: as `go_on_with_retained`"""
        if self.retained is None:
            self.retained = deque()
        self.retained.append(pieces)
        return self.go_on_with_retained()

    def go_on_with_retained(self) -> bool:
        """Send retained messages as far as room and credit go; returns whether another turn has to look up more."""
        while self.retained and self.is_open and not self.waits:
            if self.outbox.room <= 0:
                self.outbox.refused = True
                return False
            pieces = self.retained[0]
            found = pieces.piece()
            if found is None:
                if not pieces.over:
                    return True
                self.retained.popleft()
                continue
            blob, first, code = found
            if blob.qos_count:
                after = self.number(blob, first, blob.count, code | RETAINED_CODE)
                pieces.taken(after)
                if after < blob.count:
                    return False
            else:
                self.outbox.write(blob.data)
                self.delivered += blob.count
                pieces.taken(blob.count)
        return False
