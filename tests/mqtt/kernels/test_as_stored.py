"""Frames that go out as stored are those that the encoder makes of the same rows; `build` of the fan-out is the oracle.

A blob of consecutive rows finds out where its frames begin when it is asked."""

import importlib
import sys
from array import array
from bisect import bisect_left
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.conformance.wire import Prop, one_property, varint
from tests.kernel_forms import as_python, forms

BASE_LSN, BASE_TS = 1_000, 1_700_000_000_000_000
kernels = pytest.mark.parametrize("kernel", forms("rumq.mqtt.kernels.as_stored"))


def beside(kernel: Any, name: str) -> Any:
    """Another kernel in the form of this one."""
    name = f"rumq.mqtt.kernels.{name}"
    return as_python(name) if str(kernel.__file__).endswith(".py") else importlib.import_module(name)


class Message(NamedTuple):
    """left_out: its frame was left out by the shard that the chunk is from"""

    qos: int = 0
    v5: bool = False
    retain: bool = False
    expires: bool = False
    content_type: bool = False
    payload: bytes = b"x"
    left_out: bool = False

    def frame(self) -> tuple[bytes, int]:
        """As it is stored, and where its payload begins."""
        properties = b""
        if self.v5:
            properties += one_property(Prop.MESSAGE_EXPIRY, 60) if self.expires else b""
            properties += one_property(Prop.CONTENT_TYPE, "text") if self.content_type else b""
            properties = varint(len(properties)) + properties
        head = b"\0\3t/1" + (b"\0\0" if self.qos else b"") + properties
        packet = bytes([0x30 | self.qos << 1]) + varint(len(head) + len(self.payload)) + head + self.payload
        return packet, len(packet) - len(self.payload)

    def flags(self) -> int:
        return self.qos | 4 * self.retain | 8 * (self.v5 and self.expires) | 16 * self.v5


def chunk(messages: list[Message]) -> tuple[bytes, bytes]:
    rows, frames = b"", b""
    for message in messages:
        packet, payload_at = message.frame()
        row = bytearray(32)
        row[4:8] = len(frames).to_bytes(4, "little")
        row[20:24] = payload_at.to_bytes(4, "little")
        row[28] = message.flags()
        rows += row
        frames += b"" if message.left_out else packet
    return rows, frames


def built(kernel: Any, rows: Any, frames: Any, picked: list[int], form: Any, v5: bool, most: int) -> Any:
    """What the encoder makes of the same rows, at the time at which they were published."""
    places = memoryview(bytearray(len(rows) // 8)).cast("I")
    for row in picked:
        places[row] = 1
    blob, _ = beside(kernel, "fanout").build(
        rows, frames, 0, len(rows) // 32, BASE_LSN, BASE_TS, [form], array("I", [0, 1]), places, v5, most, 0,
        BASE_TS, None, 0, 1 << 40,
    )  # fmt: skip
    return blob


def pick(kernel: Any, rows: Any, frames: Any, picked: list[int], form: Any, v5: bool, most: int) -> Any:
    """The numbers of the rows stand among others, which are not looked at."""
    numbers = array("I", [1 << 31, *picked, 1 << 31])
    return kernel.pick(rows, frames, numbers, 1, 1 + len(picked), BASE_LSN, form, v5, most)


MESSAGES = st.builds(
    Message,
    qos=st.integers(0, 2),
    v5=st.sampled_from([True, True, True, False]),
    retain=st.sampled_from([False, False, False, True]),
    expires=st.sampled_from([False] * 5 + [True]),
    content_type=st.booleans(),
    payload=st.binary(max_size=3) | st.sampled_from([bytes(150), bytes(1500)]),
    left_out=st.sampled_from([False] * 7 + [True]),
)
SAME = Message(v5=True)
LONG = Message(v5=True, payload=bytes(1500))  # several are not copied


@kernels
@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
@given(
    messages=st.lists(MESSAGES, min_size=1, max_size=6) | st.lists(st.just(SAME), min_size=1, max_size=6),
    choice=st.lists(st.booleans(), min_size=6, max_size=6),
    qos=st.sampled_from([2, 2, 1, 0]),
    as_published=st.booleans(),
    v5=st.sampled_from([True, True, True, False]),
    packet_max=st.sampled_from([0, 0, 0, 11, 20, 100]),
)
@example([SAME] * 6, [False, True, True, True, False, False], 0, False, True, 0)
@example([SAME] * 6, [True, False, True, False, False, True], 0, False, True, 0)
@example([LONG] * 6, [False, True, True, True, False, False], 0, False, True, 0)
@example([LONG] * 6, [True, False, True, False, False, True], 0, False, True, 0)
def test_what_goes_out_as_stored_is_what_the_encoder_makes_and_nothing_else_does(
    kernel: Any, buffer: Any, messages: list[Message], choice: list[bool], qos: int, as_published: bool,
    v5: bool, packet_max: int,
) -> None:  # fmt: skip
    """All that differs from the stored frames has to be encoded: also times, which go on."""
    stored = [message.frame()[0] for message in messages]
    picked = [row for row in range(len(messages)) if choice[row]] or [0]
    rows, frames = map(buffer, chunk(messages))
    form = beside(kernel, "fanout").Form(qos, int(as_published), False, b"", b"")
    wanted = built(kernel, rows, frames, picked, form, v5, packet_max)
    found = pick(kernel, rows, frames, picked, form, v5, packet_max)
    if wanted.dated or wanted.count < len(picked) or wanted.data != b"".join(stored[row] for row in picked):
        assert found is None
        return
    assert found is not None
    assert (bytes(found.data), found.count, found.qos_count) == (wanted.data, wanted.count, wanted.qos_count)
    assert (found.expired, found.too_large, found.dated) == ((), (), False)
    for at in range(found.count):
        assert (found.start(at), found.lsn(at)) == (wanted.start(at), BASE_LSN + picked[at])
    assert found.start(found.count) == len(wanted.data)


@kernels
@pytest.mark.parametrize(
    ("message", "form", "v5", "most", "is_taken"),
    [
        (Message(), (0, 0), False, 0, True),
        (Message(v5=True), (0, 0), True, 0, True),
        (Message(qos=1), (1, 0), False, 0, True),
        (Message(qos=1), (2, 0), False, 0, True),
        (Message(qos=2), (1, 0), False, 0, False),  # MQTT-3.8.4-8: the QoS of the subscription is the most
        (Message(v5=True), (0, 0), False, 0, False),  # 3.1.1 has no properties
        (Message(), (0, 0), True, 0, False),
        (Message(retain=True), (0, 0), False, 0, True),
        (Message(retain=True), (0, 1), False, 0, False),  # the flag is in no stored frame
        (Message(v5=True, expires=True), (0, 0), True, 0, False),
        (Message(), (0, 0), False, 8, True),
        (Message(), (0, 0), False, 7, False),
        (Message(left_out=True), (0, 0), False, 0, False),
    ],
)
@pytest.mark.parametrize("before", [0, 2])
def test_one_row_that_differs_has_all_encoded(
    kernel: Any,
    message: Message,
    form: tuple[int, int],
    v5: bool,
    most: int,
    is_taken: bool,
    before: int,
) -> None:
    assert len(Message().frame()[0]) == 8
    plain = Message(v5=v5)._replace(payload=b"")
    rows, frames = chunk([plain] * before + [message])
    made = beside(kernel, "fanout").Form(*form, False, b"", b"")
    found = pick(kernel, rows, frames, [*range(before + 1)], made, v5, most)
    assert (found is not None) is is_taken


@kernels
@pytest.mark.parametrize("picked", [[0, 1, 2], [2, 3, 4], [4], [0, 2, 4], [1, 2, 4]])
def test_frames_are_found_by_lsn_and_by_byte(kernel: Any, picked: list[int]) -> None:
    rows, frames = chunk([Message(payload=bytes(size)) for size in (3, 0, 150, 1, 2)])
    form = beside(kernel, "fanout").Form(0, 0, False, b"", b"")
    wanted = built(kernel, rows, frames, picked, form, False, 0)
    found = pick(kernel, rows, frames, picked, form, False, 0)
    is_consecutive = picked[-1] - picked[0] == len(picked) - 1
    assert (found.starts is None) is is_consecutive, "most are sent without a look at single frames"
    lsns = [BASE_LSN + row for row in picked]
    for lsn in range(BASE_LSN, BASE_LSN + 7):
        assert found.first_at_or_after(lsn) == bisect_left(lsns, lsn)
    starts = [wanted.start(at) for at in range(len(picked) + 1)]
    for at in range(len(wanted.data) + 1):
        assert found.frame_after(at) == bisect_left(starts, at)
    for first in range(len(picked)):
        for stop in range(first, len(picked) + 1):
            assert found.part(first, stop) == wanted.data[starts[first] : starts[stop]]


@kernels
@pytest.mark.parametrize("first_asked", ["locate", "start", "lsn", "first_at_or_after", "frame_after", "part"])
def test_frames_of_a_whole_chunk_are_located_whatever_is_asked_first(kernel: Any, first_asked: str) -> None:
    messages = [Message(payload=bytes(size)) for size in (3, 0, 150)]
    rows, frames = chunk(messages)
    blob = beside(kernel, "fanout").whole(frames, rows, 3, False, BASE_LSN)
    arguments = {"locate": (), "part": (0, 1), "first_at_or_after": (BASE_LSN,)}.get(first_asked, (0,))
    getattr(blob, first_asked)(*arguments)
    assert [blob.start(at) for at in range(4)] == [0, 10, 17, 17 + len(messages[2].frame()[0])]
    assert [blob.lsn(at) for at in range(3)] == [BASE_LSN, BASE_LSN + 1, BASE_LSN + 2]


@kernels
@pytest.mark.parametrize("picked", [[1, 2, 3], [0, 2, 3]])
def test_a_session_numbers_its_copy_as_one_of_encoded_frames(kernel: Any, picked: list[int]) -> None:
    """QoS 1 and 2 among QoS 0, and a publisher's packet id is not told on."""
    rows, frames = chunk([Message(qos=qos, payload=b"%d" % qos) for qos in (1, 0, 1, 2)])
    ids = bytearray(frames)
    for at in (0, len(Message(qos=1).frame()[0]) + len(Message().frame()[0])):
        ids[at + 7 : at + 9] = b"\xab\xcd"
    fanout, window = beside(kernel, "fanout"), beside(kernel, "window")
    form = fanout.Form(2, 0, False, b"", b"")
    wanted = built(kernel, rows, frames, picked, form, False, 0)
    found = pick(kernel, rows, bytes(ids), picked, form, False, 0)
    copies, lsns = [], []
    for blob in (wanted, found):
        session = window.Window(10)
        data, after = fanout.number(session, blob, 0, blob.count, 3, 1 << 16)
        assert after == 3
        copies.append(bytes(data))
        lsns.append([lsn for *_, lsn in session.waiting()])
    assert copies[0] == copies[1]
    assert lsns[0] == lsns[1] == [BASE_LSN + row for row in picked if row != 1]


def test_the_forms_are_tested_apart() -> None:
    """Uncompiled, this kernel makes blobs of the uncompiled fan-out."""
    plain = as_python("rumq.mqtt.kernels.as_stored")
    assert plain.Blob is sys.modules["rumq.mqtt.kernels.fanout__as_python"].Blob


@kernels
@pytest.mark.parametrize(("others", "is_view"), [(0, True), (28, True), (31, False)])
def test_frames_are_shared_with_the_chunk_where_they_are_a_good_part_of_it(
    kernel: Any, others: int, is_view: bool
) -> None:
    """A client that does not read keeps what it was given: a view keeps the whole chunk."""
    rows, frames = chunk([LONG] * (2 + others))
    form = beside(kernel, "fanout").Form(0, 0, False, b"", b"")
    blob = pick(kernel, rows, frames, [0, 1], form, True, 0)
    assert isinstance(blob.data, memoryview) is is_view
    assert bytes(blob.data) == 2 * LONG.frame()[0]
