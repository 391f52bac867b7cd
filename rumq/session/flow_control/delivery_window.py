"""From the log to one client: how much it can take now, in which packets, and what it could not take.

The log is the queue: what does not fit into the outbox, or into the in-flight window (MQTT 5.0, 4.9), is not kept
here. It is reported as `Blocked` with the lsn to go on from, and read again when there is room.

Knows no socket (the outbox is given), no subscription, no file."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from router.commands import Blocked, CommandQueue
from router.effects import Deliver
from router.reader import Reader
from router.slots import PARTITION_BITS, RETAINED_CODE
from rumq.mqtt.kernels import fanout
from rumq.mqtt.kernels.window import Window
from rumq.session.flow_control.replay_throttle import Meter

PIECE_BYTES = 1 << 16  # how much of a numbered blob is copied at a time


class Outbox(Protocol):
    """Bytes that wait for a socket. room: how many more bytes it wants; refused: set it when that was too few,
    and the owner will be told when there is room again."""

    room: int
    refused: bool

    def write(self, data: object, owner: object | None = None) -> None: ...

    def waits(self) -> bool:
        """Whether something is on its way out."""


class Pieces(Protocol):
    """Retained messages for one client, found as it takes them: `rumq.shards.delivery.retained_delivery`."""

    over: bool

    def piece(self) -> tuple[Any, int, int] | None: ...

    def taken(self, stop: int) -> None: ...


class Noted(Protocol):
    """Who keeps a durable session's messages in mind, and sends them."""

    def sent(self, window: Window, code: int, first: int, data: object) -> None: ...


class DeliveryWindow:
    """The sink of one connected session."""

    __slots__ = (
        "_commands", "_make_window", "_noted", "aliases", "delivered", "is_open", "meter", "outbox", "retained",
        "waits", "window", "window_full",
    )  # fmt: skip

    def __init__(
        self, outbox: Outbox, make_window: Callable[[], Window], window: Window | None, commands: CommandQueue,
        noted: Noted | None = None,
    ) -> None:  # fmt: skip
        """make_window: makes the session's window when the first message of QoS 1 or 2 comes; noted: of a session
        that outlives the broker"""
        self.outbox = outbox
        self.window = window
        self.retained: deque[Pieces] | None = None
        self.aliases: dict[int, int] | None = None  # partition << 32 | topic id -> told to the client
        self.window_full = False  # something waits for credit
        self.is_open = True
        self.meter: Meter | None = None  # of what it is sent of the past
        self.delivered = 0
        self.waits = False  # something must go out first, and is being written down
        self._noted = noted
        self._make_window = make_window
        self._commands = commands

    def takes(self, effect: Deliver, reader: Reader) -> bool:
        """Whether the client can take anything now; if not, all of it is to come again."""
        partition = effect.partition
        if self.is_open and reader.refused >> partition & 1 and reader.share is None:
            return False  # what came before it in this step was not taken: it comes again, behind that
        # One that is not open has gone in this very step: the session still wants it.
        if self.is_open and not (
            self.waits or self.retained or self.outbox.room <= 0 or self.is_spent_for(reader)
        ):
            return True
        if self.is_open and not self.waits and (self.retained or self.outbox.room <= 0):
            self.outbox.refused = True
        self._commands.put(Blocked(reader, partition, effect.chunk.base_lsn + effect.first))
        return False

    def offer(self, effect: Deliver, reader: Reader, blob: fanout.Blob) -> int:
        """Take as much of a blob as fits, from row `effect.first` up to `effect.stop`.

        returns: the row up to which nothing comes again"""
        if not self.takes(effect, reader):
            return effect.first
        partition = effect.partition
        base = blob.base_lsn
        first = blob.first_at_or_after(base + effect.first) if effect.first else 0
        count = (
            blob.count if effect.stop == effect.chunk.count else blob.first_at_or_after(base + effect.stop)
        )
        if first >= count:
            return effect.stop
        if reader.redelivered_below is not None and base + effect.first < reader.redelivered_below[partition]:
            taken = self._offer_again(reader, partition, blob, first, count)
            return effect.stop if taken == count else int(blob.lsn(taken) - base)
        if not blob.qos_count:
            data: Any = blob.data if first == 0 and count == blob.count else blob.part(first, count)
            # What a share hands out is not cut back: it would not know where the part ends.
            owner = (
                (self, reader, partition, blob, first, count, effect.stop) if reader.share is None else None
            )
            self.outbox.write(data, owner)
            self.delivered += count - first
            if self.meter is not None:
                self.metered(reader, count - first, len(data))
            return effect.stop
        taken = self.number(blob, first, count, reader.number << PARTITION_BITS | partition)
        if self.meter is not None:
            self.metered(reader, taken - first, blob.start(taken) - blob.start(first))
        if taken == count:
            return effect.stop
        lsn = blob.lsn(taken)
        self._refuse(reader, partition, lsn)
        return int(lsn - base)

    def close(self) -> None:
        """Its client has gone: what is offered now is for the session to have later."""
        self.is_open = False
        # Each of them leads back here: without them nothing of a client that has gone waits for the collector.
        self._noted = self.meter = self.retained = None

    def is_spent_for(self, reader: Reader) -> bool:
        """Whether the client has been sent as much of the past as it may be for now; it goes on by itself."""
        return self.meter is not None and self.meter.is_spent and reader.group.wants.committed_only

    def metered(self, reader: Reader, messages: int, size: int) -> None:
        if self.meter is not None and reader.group.wants.committed_only:
            self.meter.spend(messages, size)

    def _refuse(self, reader: Reader, partition: int, lsn: int) -> None:
        """Have everything from `lsn` on come again; nothing behind it, of QoS 0, may pass meanwhile."""
        reader.refused |= 1 << partition
        self._commands.put(Blocked(reader, partition, lsn))

    def _offer_again(self, reader: Reader, partition: int, blob: fanout.Blob, first: int, count: int) -> int:
        """Take messages that the client may have had before a crash: QoS 0 at most once, all others with DUP.

        Frames of QoS 1 and 2 that follow one another are taken together: each piece may wait for the journal.

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
            window = self.window = self._make_window()
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
            if self._noted is not None and window.next != before:
                self._noted.sent(window, code, before, data)
            else:
                self.outbox.write(data)
            self.delivered += after - first
            first = after
        return first

    def credit(self) -> int:
        """How many messages of QoS 1 and 2 the client would take now."""
        if self.window is None:
            self.window = self._make_window()
        return int(self.window.credit())

    def cut_at(self, owned: tuple[Any, ...], sent: int) -> int:
        """The socket took `sent` bytes of a blob and no more: how many to keep in the outbox, to end a frame.

        The rest will be read from the log again."""
        _, reader, partition, blob, first, count, stop = owned
        begin = blob.start(first)
        frame = min(blob.frame_after(begin + sent), count)
        if frame < count:
            self.delivered -= count - frame
            lsn = blob.lsn(frame)
            self._commands.put(Blocked(reader, partition, lsn))
            if blob.expired or blob.too_large:
                # They stand behind it and are counted: not once more when they come again.
                left_out = [blob.base_lsn + row for row in (*blob.expired, *blob.too_large) if row < stop]
                reader.counted = reader.counted or set()
                reader.counted.update((partition, at) for at in left_out if at > lsn)
        return int(blob.start(frame) - begin)

    def offer_retained(self, pieces: Pieces) -> bool:
        """Take retained messages; while some wait for room or credit, nothing else is taken.

        returns: as `go_on_with_retained`"""
        if self.retained is None:
            self.retained = deque()
        self.retained.append(pieces)
        return self.go_on_with_retained()

    def go_on_with_retained(self) -> bool:
        """Send retained messages as far as room and credit go; whether more are to be looked for in another turn."""
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
