"""Messages on a link: whole ones are handled however the bytes arrive, and none after its end."""

from errno import EAGAIN
from typing import Any

import pytest

from rumq.net.frames import FRAME_BYTES_MAX, encode
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
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
