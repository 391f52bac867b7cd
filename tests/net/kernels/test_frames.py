"""The kernel that cuts WebSocket frames agrees with wsproto, compiled and as Python. RFC 6455, 5."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wsproto.frame_protocol import CloseReason, FrameProtocol, Opcode

from tests.kernel_forms import forms

FORMS = forms("rumq.net.kernels.frames")
LIMIT = 1 << 20
MASK = b"\x37\xfa\x21\x3d"


def frame(opcode: int, content: bytes, *, final: bool = True, first: int = 0) -> bytes:
    """As a client sends it. first: bits to be set in its first byte"""
    size = len(content)
    head = bytes([final << 7 | opcode | first])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 65536:
        head += b"\xfe" + size.to_bytes(2, "big")
    else:
        head += b"\xff" + size.to_bytes(8, "big")
    return head + MASK + bytes(byte ^ key for byte, key in zip(content, itertools.cycle(MASK), strict=False))


def taken(incoming: Any, data: bytes, cut: list[int]) -> bytes:
    """All messages' bytes of `data`, given in pieces of these lengths and the rest."""
    found, at = b"", 0
    for size in [*cut, len(data)]:
        piece = bytearray(data[at : at + size])
        at += size
        count = incoming.take(piece, len(piece))
        found += piece[:count]
    return found


@pytest.mark.parametrize("kernel", FORMS)
@pytest.mark.parametrize("size", [0, 1, 3, 4, 7, 8, 9, 125, 126, 127, 65535, 65536, 100_000])
def test_a_frame_of_any_size_is_its_content(kernel: Any, size: int) -> None:
    content = bytes(n * 7 & 255 for n in range(size))
    data = frame(2, content)
    assert taken(kernel.Incoming(LIMIT), data, []) == content
    assert taken(kernel.Incoming(LIMIT), data, [1, 1, 1, 5, 3, 2, 50]) == content
    assert taken(kernel.Incoming(LIMIT), data + frame(2, b"next"), []) == content + b"next"


messages = st.lists(
    st.one_of(
        st.tuples(st.just("message"), st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=4)),
        st.tuples(st.just("ping"), st.binary(max_size=125), st.just([])),
        st.tuples(st.just("pong"), st.binary(max_size=125), st.just([])),
    ),
    max_size=8,
)


@pytest.mark.parametrize("kernel", FORMS)
@given(sent=messages, cut=st.lists(st.integers(1, 200), max_size=30))
@settings(max_examples=150, deadline=None)
def test_what_wsproto_sends_is_taken_however_it_is_cut(
    kernel: Any, sent: list[tuple[str, bytes, list[int]]], cut: list[int]
) -> None:
    """Messages in fragments, with control frames between these."""
    client = FrameProtocol(client=True, extensions=[])
    data, wanted, ping = b"", b"", None
    for kind, content, fragments in sent:
        if kind == "message":
            at = 0
            for size in fragments:
                data += client.send_data(content[at : at + size], fin=False)
                data += client.pong(b"between")
                at += size
            data += client.send_data(content[at:], fin=True)
            wanted += content
        else:
            data += client.ping(content) if kind == "ping" else client.pong(content)
            ping = content if kind == "ping" else ping
    incoming = kernel.Incoming(LIMIT)
    assert taken(incoming, data, cut) == wanted
    assert incoming.ping == ping and not incoming.fault and not incoming.closed


@pytest.mark.parametrize("kernel", FORMS)
@given(content=st.binary(max_size=400), at=st.integers(0, 420))
@settings(max_examples=60, deadline=None)
def test_another_process_goes_on_where_this_one_was(kernel: Any, content: bytes, at: int) -> None:
    data = frame(2, content[:100], final=False) + frame(9, b"ping") + frame(0, content[100:])
    first, second = kernel.Incoming(LIMIT), kernel.Incoming(LIMIT)
    found = taken(first, data[:at], [])
    second.restore(first.state())
    assert found + taken(second, data[at:], [3]) == content
    assert second.ping == b"ping"


@pytest.mark.parametrize("kernel", FORMS)
@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (frame(1, b"text"), 1003, "text frame"),
        (frame(2, b"x", first=0x40), 1002, "reserved bits"),
        (frame(3, b"x"), 1002, "no known kind (3)"),
        (frame(11, b"x"), 1002, "no known kind (11)"),
        (frame(0, b"x"), 1002, "out of order"),
        (frame(2, b"x", final=False) + frame(2, b"y"), 1002, "out of order"),
        (frame(9, b"x", final=False), 1002, "in pieces"),
        (frame(9, bytes(126)), 1002, "too long"),
        (b"\x82\x01x", 1002, "without a mask"),
        (b"\x82\xfe\x00\x05" + bytes(9), 1002, "length"),
        (b"\x82\xff\x00\x00\x00\x00\x00\x00\xff\xff" + bytes(9), 1002, "length"),
        (b"\x82\xff\xff\x00\x00\x00\x00\x00\xff\xff" + bytes(9), 1002, "length"),
        (b"\x82\xff\x00\x00\x00\x00\x00\x10\x00\x01" + bytes(9), 1009, "1048577 bytes, the limit is 1048576"),
        (frame(8, b"x"), 1002, "half a code"),
        (frame(8, b"\x03\xed"), 1002, "the code 1005"),
        (frame(8, b"\x00\x01"), 1002, "the code 1"),
        (frame(8, b"\x03\xe8\xff"), 1007, "no UTF-8"),
    ],
)
@pytest.mark.parametrize("cut", [[], [1] * 40])
def test_what_is_against_the_rules_ends_it(kernel: Any, data: bytes, code: int, words: str, cut: list[int]) -> None:
    incoming = kernel.Incoming(LIMIT)
    before = frame(2, b"good")
    found = taken(incoming, before + data + frame(2, b"behind"), [len(before), *cut])
    assert found in (b"good", b"goodx")
    assert incoming.fault == code and words in incoming.why


@pytest.mark.parametrize("kernel", FORMS)
@pytest.mark.parametrize(
    ("content", "code"), [(b"", 1005), (b"\x03\xe8", 1000), (b"\x03\xe9bye", 1001), (b"\x0f\xa0", 4000)]
)
def test_a_close_has_its_code(kernel: Any, content: bytes, code: int) -> None:
    incoming = kernel.Incoming(LIMIT)
    assert taken(incoming, frame(2, b"last") + frame(8, content) + frame(2, b"behind"), []) == b"last"
    assert incoming.closed == code and not incoming.fault


@pytest.mark.parametrize("kernel", FORMS)
@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
def test_a_client_understands_what_we_send(kernel: Any, size: int) -> None:
    client = FrameProtocol(client=True, extensions=[])
    client.receive_bytes(kernel.header(size) + bytes(size) + kernel.control(8, b"\x03\xe8"))
    data, close = client.received_frames()
    assert (data.opcode, data.payload, data.message_finished) == (Opcode.BINARY, bytes(size), True)
    assert close.opcode == Opcode.CLOSE and close.payload == (CloseReason.NORMAL_CLOSURE, "")
