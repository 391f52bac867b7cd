"""One connection to another shard, a stream socket that the pump serves like a client's.

Frames are those of `rumq.net.frames`. The head is a message of `rumq.shards.bus.messages`; raw bytes are rows and
frames of chunks (docs/reference/log-format.md). They are received into the buffer in which the chunk keeps them; from a
shard of the same node those of a long message come by way of a `SharedRing`, if both sides have it."""
# compiled: warm

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

import msgspec

from rumq.loop.backoff import Backoff
from rumq.loop.ports import Clock, Timers
from rumq.net.frames import FRAME_BYTES_MAX, IN_RING, PLACE, Raw, decode, encode, encode_placed
from rumq.net.kernels.sockets import buffer_of
from rumq.shards.bus.messages import AnyMessage
from rumq.shards.bus.shared_ring import SharedRing

BACKOFF_SECONDS = (0.0, 0.1, 0.5, 2.0, 10.0)
STEADY_SECONDS = 1.0

_decoder: msgspec.msgpack.Decoder[AnyMessage] = msgspec.msgpack.Decoder(AnyMessage)


class BusTransport(Protocol):
    """What is used of `rumq.net.connection.Connection`. room: bytes until its queue is full; refused: for want of room,
    so `drained` is called once there is some"""

    room: int
    refused: bool
    bytes_out: int

    @property
    def peer(self) -> str: ...

    def write(self, data: Raw) -> None: ...
    def waits(self) -> bool:
        """Whether something is queued."""

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    def close(self) -> None: ...


class BusLink:
    """The `ConnectionHandler` of a connection to another shard."""

    is_bus = True
    client_id = None

    __slots__ = (
        "_begun",
        "_is_placed",
        "_lost",
        "_read",
        "_received",
        "_ring_out",
        "_there",
        "attempt",
        "closed",
        "drained",
        "ring",
        "transport",
    )

    def __init__(
        self, transport: BusTransport, received: Callable[[AnyMessage, memoryview], None], lost: Callable[[str], None],
        drained: Callable[[], None], read: Callable[[bytearray, int], int] | None = None,
        ring: SharedRing | None = None,
    ) -> None:  # fmt: skip
        """received: takes each message with its raw bytes, which are its own to keep and to change
        read: receives into a buffer from a position on what is there; returns how many bytes, 0 or less for none
        ring: of this link, which the other side perhaps has not"""
        self.transport = transport
        self.attempt = 1  # 1, and one more for each link in a row before it that soon ended
        self._received, self._lost, self.drained, self._read = received, lost, drained, read
        self.closed = False
        self._begun: bytearray | None = None  # a message that has not arrived as a whole, without its first u32
        self._there = 0  # bytes of `_begun` that have arrived
        self._is_placed = False  # True if the raw bytes of `_begun` are in the ring
        self.ring = ring
        self._ring_out: SharedRing | None = None  # the ring, once the other side has said that it has it

    def proved_sound(self) -> None:
        """It has lived long enough: a fault from here on has nothing to do with those before it."""
        self.attempt = 1

    def share(self, identity: int) -> None:
        """The other side has a ring of this identity: use it if it is this link's."""
        if self.ring is not None and identity == self.ring.identity:
            self._ring_out = self.ring

    def say(self, message: AnyMessage, *raw: Raw) -> None:
        """Send a message at the end of the turn; raw buffers must not change until then."""
        if self.closed:
            return
        ring = self._ring_out
        if ring is not None and raw:
            count = sum(map(len, raw))
            if count > ring.inline_bytes_max:
                position = ring.put(raw, count)
                if position >= 0:
                    self.transport.write(encode_placed(message, position, count))
                    self.transport.bytes_out += count
                    return
        for part in encode(message, raw):
            self.transport.write(part)

    def receive(self, data: Raw, pos: int, end: int) -> int:
        """Handle the whole messages of `data[pos:end]`; returns the position of the first byte not consumed."""
        view = memoryview(data)
        if self._begun is not None:
            pos = self._go_on(self._begun, view, pos, end)
        while end - pos >= 8 and not self.closed:
            size = int.from_bytes(view[pos : pos + 4], "little")
            is_placed = bool(size & IN_RING) and self.ring is not None
            if is_placed:
                size -= IN_RING
            if size > FRAME_BYTES_MAX:
                raise ValueError(f"a message of {size} bytes on the bus")
            pos += 4
            if end - pos < size:
                self._begun, self._there, self._is_placed = buffer_of(size), 0, is_placed
                pos = self._go_on(self._begun, view, pos, end)
            else:
                self._handle(bytearray(view[pos : pos + size]), is_placed)
                pos += size
        return end if self.closed else pos

    def _go_on(self, begun: bytearray, view: memoryview, pos: int, end: int) -> int:
        """Add to a message what has arrived, and what else is there of it; returns the first byte behind it."""
        there = self._there
        taken = min(len(begun) - there, end - pos)
        begun[there : there + taken] = view[pos : pos + taken]
        there += taken
        if there < len(begun) and self._read is not None:
            there += max(0, self._read(begun, there))
        self._there = there
        if there == len(begun):
            self._begun = None
            self._handle(begun, self._is_placed)
        return pos + taken

    def _handle(self, whole: bytearray, is_placed: bool) -> None:
        message, raw = decode(_decoder, memoryview(whole))
        if is_placed:
            if len(raw) != PLACE.size:
                raise ValueError(f"a place of {len(raw)} bytes on the bus")
            assert self.ring is not None
            raw = memoryview(self.ring.take(*PLACE.unpack(raw)))
        self._received(message, raw)

    def lost(self, why: str) -> None:
        """The connection has ended."""
        if not self.closed:
            self.closed = True
            self.ring = self._ring_out = None
            self._lost(why)

    def turned_away(self, why: str) -> None:
        self.end()

    def dismiss(self, reason: object, why: str | None = None) -> None: ...

    def end(self, *, with_will: bool = True) -> None:
        """Close the connection after a fault; the shard with the higher index dials again."""
        self.lost("given up")
        self.transport.close()


class LinkRetries:
    """When the link to another shard is made anew: at once, and ever later while links end soon after their begin."""

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock, self.later = clock, timers.later
        self._backoffs: dict[int, Backoff] = defaultdict(lambda: Backoff(BACKOFF_SECONDS, STEADY_SECONDS))
        self._began: dict[int, float] = defaultdict(float)
        self._ended_soon: dict[int, int] = defaultdict(int)  # by shard: links in a row that soon ended

    def began(self, shard: int, link: BusLink) -> None:
        link.attempt = 1 + self._ended_soon[shard]
        self._began[shard] = self._clock.monotonic
        self.later(STEADY_SECONDS, link.proved_sound)

    def ended(self, shard: int) -> tuple[float, int]:
        """returns: seconds to wait before the next link; how many have ended in a row, with this one"""
        lived = self._clock.monotonic - self._began[shard]
        self._ended_soon[shard] = self._ended_soon[shard] + 1 if lived < STEADY_SECONDS else 0
        backoff = self._backoffs[shard]
        return backoff.died(lived), backoff.deaths
