"""Messages on a link: whole ones are handled however the bytes arrive, and none after its end."""

from errno import EAGAIN
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.net.frames import FRAME_BYTES_MAX, IN_RING, PLACE, PREFIX, encode, encode_placed
from rumq.net.kernels import shared_memory
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.shared_ring import SharedRing
from tests.shards.bus.world import LinkEnd, decoded


def linked() -> tuple[BusLink, LinkEnd, list[tuple[Any, bytes]], list[str]]:
    transport, received, lost = LinkEnd(), list[tuple[Any, bytes]](), list[str]()
    link = BusLink(transport, lambda message, raw: received.append((message, bytes(raw))), lost.append, lambda: None)
    return link, transport, received, lost


MESSAGES: list[tuple[m.AnyMessage, bytes]] = [
    (m.Mark(0, 1, 2, 3, 4), b""),
    (m.PublishedRecords(1, 9, 1, 0, [(0, b"t")], [], 3, 4), b"rowframe"),
    (m.Drained(), b""),
]


WIRE = b"".join(bytes(part) for message, raw in MESSAGES for part in encode(message, [raw]))


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_messages_are_handled_once_whole_however_their_bytes_arrive(piece: int) -> None:
    link, _, received, _ = linked()
    pending = b""
    for at in range(0, len(WIRE), piece):
        pending += WIRE[at : at + piece]
        pending = pending[link.receive(pending, 0, len(pending)) :]
    assert received == MESSAGES and not pending


@pytest.mark.parametrize("at_once", [0, 1, 13, 1000])
@pytest.mark.parametrize("first", range(8, len(WIRE)))
def test_the_rest_of_a_message_is_received_where_it_is_kept(first: int, at_once: int) -> None:
    """The pump's read ends at `first`; what follows comes by the link's own reads, `at_once` bytes at most each."""
    received = list[tuple[Any, bytes]]()
    reached = first

    def read(buffer: bytearray, at: int) -> int:
        nonlocal reached
        piece = WIRE[reached : reached + min(len(buffer) - at, at_once)]
        buffer[at : at + len(piece)] = piece
        reached += len(piece)
        return len(piece) or -EAGAIN

    link = BusLink(
        LinkEnd(),
        lambda message, raw: received.append((message, bytes(raw))),
        lambda _: None,
        lambda: None,
        read,
    )
    pending = WIRE[:first]
    pending = pending[link.receive(pending, 0, len(pending)) :]
    while reached < len(WIRE):  # the pump's next reads
        pending += WIRE[reached : reached + 16]
        reached = min(len(WIRE), reached + 16)
        pending = pending[link.receive(pending, 0, len(pending)) :]
    assert received == MESSAGES and not pending


def test_raw_bytes_are_the_receiver_s_own_and_aligned_as_rows_are() -> None:
    kept = list[memoryview]()
    link = BusLink(LinkEnd(), lambda _, raw: kept.append(raw), lambda _: None, lambda: None)
    for data in (bytearray(WIRE), bytearray(WIRE[:20])):  # a whole message, and one that comes in two parts
        link.receive(data, 0, len(data))
        data[:] = bytes(len(data))
    link.receive(WIRE, 20, len(WIRE))
    assert [bytes(raw) for raw in kept] == 2 * [raw for _, raw in MESSAGES]
    for raw in kept:
        raw[:] = bytes(len(raw))  # it may be changed
    for message, raw in MESSAGES:
        head, *_ = encode(message, [raw])
        assert (len(head) - 8) % 8 == 0


def test_raw_bytes_travel_behind_the_head_uncopied() -> None:
    raw = bytearray(b"frames")
    parts = encode(m.Drained(), [raw, b""])
    assert parts[1] is raw and len(parts) == 2
    message, rest = decoded(b"".join(parts))
    assert message == m.Drained() and bytes(rest) == b"frames"


def test_a_length_that_nobody_sends_ends_the_connection() -> None:
    link, *_ = linked()
    with pytest.raises(ValueError, match="bytes on the bus"):
        link.receive((FRAME_BYTES_MAX + 1).to_bytes(4, "little") + bytes(4), 0, 8)


def test_its_end_is_reported_once_and_nothing_is_sent_after_it() -> None:
    link, transport, _, lost = linked()
    link.end()
    link.lost("reset")
    link.say(m.Drained())
    assert lost == ["given up"] and transport.is_closed and not transport.written


# Rings


class Pair:
    """Two links with a ring, or without: what the first one says, and what the second one has heard of it."""

    def __init__(self, ring_bytes: int, inline_bytes_max: int = 8) -> None:
        patch = pytest.MonkeyPatch()
        with patch.context() as patched:
            patched.setattr(shared_memory, "IS_ORDERED", True)  # in one process it is
            made = SharedRing.make(ring_bytes, inline_bytes_max)
            theirs = SharedRing.accept(made[1]) if made is not None else None
        self.ring = made[0] if made is not None else None
        self.transport = LinkEnd()
        self.heard: list[tuple[Any, bytes]] = []
        self.here = BusLink(self.transport, lambda *_: None, lambda _: None, lambda: None, ring=self.ring)
        self.there = BusLink(LinkEnd(), self._hear, lambda _: None, lambda: None, ring=theirs)
        self._pending = b""

    def _hear(self, message: Any, raw: memoryview) -> None:
        self.heard.append((message, bytes(raw)))
        raw[:] = bytes(len(raw))  # its own to change

    def carry(self, size: int) -> None:
        """So many bytes of what was said arrive."""
        self._pending += self.transport.written[:size]
        del self.transport.written[:size]
        self._pending = self._pending[self.there.receive(self._pending, 0, len(self._pending)) :]

    def share(self) -> None:
        assert self.ring is not None
        self.here.share(self.ring.identity)


STEPS = st.lists(
    st.one_of(
        st.lists(st.binary(max_size=60), max_size=4),  # say this
        st.integers(1, 200),  # so many bytes arrive
        st.just("share"),
    ),
    max_size=40,
)


@given(steps=STEPS, ring_bytes=st.sampled_from([16, 64, 256, 4096]))
def test_with_a_ring_and_without_the_same_comes_in_the_same_order(steps: list[Any], ring_bytes: int) -> None:
    with_ring, without = Pair(ring_bytes), Pair(0)
    for number, step in enumerate(steps):
        if step == "share":
            with_ring.share()
        elif isinstance(step, int):
            with_ring.carry(step)
        else:
            for pair in (with_ring, without):
                raw = [bytearray(part) for part in step]
                pair.here.say(m.Numbered(number, [(1, 2)]), *raw)
    for pair in (with_ring, without):
        pair.carry(1 << 20)
    assert with_ring.heard == without.heard
    assert len(without.heard) == sum(isinstance(step, list) for step in steps)


def test_what_is_long_goes_through_the_ring_and_what_is_short_or_finds_no_room_over_the_socket() -> None:
    pair = Pair(64)
    pair.share()
    sent = []
    for raw in (b"short", b"l" * 60, b"no room", b"no room for it", b""):
        before = pair.transport.bytes_out
        pair.here.say(m.Drained(), raw)
        sent.append((raw in bytes(pair.transport.written), pair.transport.bytes_out - before))
    assert sent == [(True, 0), (False, 60), (True, 0), (True, 0), (True, 0)]
    pair.carry(1 << 20)
    pair.here.say(m.Drained(), b"room again")
    assert b"room again" not in pair.transport.written
    pair.carry(1 << 20)
    assert [raw for _, raw in pair.heard] == [b"short", b"l" * 60, b"no room", b"no room for it", b"", b"room again"]


def test_a_ring_is_used_once_the_other_side_has_said_that_it_has_the_same() -> None:
    pair = Pair(4096)
    assert pair.ring is not None
    for identity in (0, pair.ring.identity ^ 1):
        pair.here.share(identity)
        pair.here.say(m.Drained(), b"over the socket")
    assert pair.transport.written.count(b"over the socket") == 2
    pair.share()
    pair.here.say(m.Drained(), b"through the ring")
    assert b"through the ring" not in pair.transport.written


def test_what_was_put_into_the_ring_of_a_side_that_has_died_is_received_with_what_it_has_sent() -> None:
    pair = Pair(4096)
    pair.share()
    pair.here.say(m.Drained(), b"whole message")
    pair.here.say(m.Mark(1, 2, 3, 4, 5), b"half a message")
    half = len(pair.transport.written) - 3
    pair.here.lost("killed")
    pair.ring = None
    pair.carry(half)
    pair.there.lost("closed")
    assert pair.heard == [(m.Drained(), b"whole message")]
    pair.there.lost("closed again")
    assert pair.there.ring is None and pair.here.ring is None


def placed(position: int, count: int) -> bytes:
    return encode_placed(m.Drained(), position, count)


def of_raw(raw: bytes) -> bytes:
    frame = b"".join(map(bytes, encode(m.Drained(), [raw])))
    size, head = PREFIX.unpack_from(frame)
    return PREFIX.pack(size | IN_RING, head) + frame[8:]


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (placed(0, 0), "of a ring"), (placed(0, 4097), "of a ring"), (placed(1, 8), "of a ring"),
        (placed(1 << 63, 8), "of a ring"), (placed(0, 1 << 63), "of a ring"), (placed(4096, 8), "of a ring"),
        (of_raw(b""), "a place of 0 bytes"), (of_raw(b"1234567"), "a place of 7 bytes"),
        (of_raw(PLACE.pack(0, 8) + b"more"), "a place of 20 bytes"),
        (PREFIX.pack(IN_RING | 9, 1 << 31) + bytes(9), "no message"),
        ((IN_RING + FRAME_BYTES_MAX + 1).to_bytes(4, "little") + bytes(4), "bytes on the bus"),
    ],
)  # fmt: skip
def test_a_place_where_nothing_can_be_ends_the_connection(frame: bytes, why: str) -> None:
    pair = Pair(4096)
    with pytest.raises(ValueError, match=why):
        pair.there.receive(frame, 0, len(frame))
    assert not pair.heard


def test_a_place_without_a_ring_ends_the_connection() -> None:
    pair = Pair(0)
    with pytest.raises(ValueError, match="bytes on the bus"):
        pair.there.receive(placed(0, 8), 0, 48)
