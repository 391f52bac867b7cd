"""The checking kernel counts every fault a broker can make as what it is. MQTT 3.1.1, 4.3 and 4.6."""

from itertools import pairwise
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.frames import checker, frame, take
from tests.kernel_forms import forms

each_form = pytest.mark.parametrize("kernel", forms("bench.kernels.check"))
COUNTS = (
    "received",
    "skipped",
    "late",
    "corrupt",
    "stray",
    "redelivered",
    "completed",
    "disordered",
    "others",
)


def counts(check: object) -> dict[str, int]:
    """The counts that are not zero."""
    return {name: value for name in COUNTS if (value := getattr(check, name))}


@each_form
def test_messages_in_order_from_several_publishers_are_received_and_nothing_else(kernel: ModuleType) -> None:
    check = checker(kernel)
    data = b"".join(frame(publisher, sequence) for sequence in range(5) for publisher in range(3))
    assert take(check, data) == (len(data), b"")
    assert counts(check) == {"received": 15}
    assert check.position == 15


@each_form
def test_a_missing_message_is_skipped_and_moves_the_position(kernel: ModuleType) -> None:
    check = checker(kernel)
    take(check, frame(1, 0) + frame(1, 3))
    assert counts(check) == {"received": 2, "skipped": 2}
    assert check.position == 4


@each_form
def test_a_message_that_comes_twice_or_after_its_successor_is_late(kernel: ModuleType) -> None:
    check = checker(kernel)
    take(check, frame(0, 0) + frame(0, 0) + frame(0, 2) + frame(0, 1))
    assert counts(check) == {"received": 4, "late": 2, "skipped": 1}
    assert check.position == 3


@each_form
@pytest.mark.parametrize(
    "broken",
    [
        frame(0, 0, filler=b"x" * 44),
        frame(0, 0, filler=b"short"),
        frame(0, 0, topic=b"b/00001"),
        frame(0, 0, topic=b"b/0000"),
        frame(0, 2**40),
        b"\x30\x00",
        b"\x30\x01\x00",
    ],
    ids=["filler", "length", "topic", "topic length", "sequence", "empty", "cut"],
)
def test_a_message_with_the_wrong_content_is_corrupt(kernel: ModuleType, broken: bytes) -> None:
    check = checker(kernel)
    assert take(check, broken + frame(0, 0))[0] == len(broken) + len(frame(0, 0))
    assert counts(check) == {"corrupt": 1, "received": 1}


@each_form
def test_a_message_of_an_earlier_round_or_of_nobody_here_is_stray(kernel: ModuleType) -> None:
    check = checker(kernel)
    check.begin(1000)
    own = frame(1000, 0, topic=b"b/00000")
    take(check, frame(999, 0) + frame(1003, 0) + own)
    assert counts(check) == {"stray": 2, "received": 1}


@each_form
def test_a_qos1_message_is_answered_by_puback_with_its_id(kernel: ModuleType) -> None:
    check = checker(kernel)
    _, replies = take(check, frame(0, 0, qos=1, packet_id=0x1234) + frame(0, 1, qos=1, packet_id=7))
    assert replies == bytes.fromhex("4002 1234 4002 0007")


@each_form
def test_a_qos2_message_is_answered_by_pubrec_and_its_pubrel_by_pubcomp(kernel: ModuleType) -> None:
    check = checker(kernel)
    _, replies = take(check, frame(0, 0, qos=2, packet_id=0x1234) + bytes.fromhex("6202 1234"))
    assert replies == bytes.fromhex("5002 1234 7002 1234")
    assert counts(check) == {"received": 1}


@each_form
def test_a_redelivered_message_is_counted(kernel: ModuleType) -> None:
    check = checker(kernel)
    take(check, frame(0, 0, qos=1, packet_id=1, first_byte=0x3A))
    assert counts(check) == {"received": 1, "redelivered": 1}


@each_form
def test_puback_and_pubcomp_complete_a_message_and_pubrec_asks_for_pubrel(kernel: ModuleType) -> None:
    check = checker(kernel)
    _, replies = take(check, bytes.fromhex("4002 0001 5002 0002 7002 0002"))
    assert replies == bytes.fromhex("6202 0002")
    assert counts(check) == {"completed": 2}


@each_form
def test_acknowledgements_out_of_order_are_counted(kernel: ModuleType) -> None:
    """MQTT 3.1.1, 4.6: PUBACKs come in the order of the PUBLISHes."""
    check = checker(kernel)
    take(check, bytes.fromhex("4002 0002 4002 0001 4002 0003"))
    assert counts(check) == {"completed": 3, "disordered": 2}


@each_form
def test_latency_is_the_time_from_the_stamp_until_samples_are_full(kernel: ModuleType) -> None:
    check = checker(kernel, samples=2)
    data = b"".join(frame(0, sequence, sent_ns=1_000 + sequence) for sequence in range(3))
    take(check, data, now_ns=5_000)
    assert check.samples == 2


@each_form
def test_a_remaining_length_of_five_bytes_is_refused(kernel: ModuleType) -> None:
    with pytest.raises(ValueError, match="four bytes"):
        take(checker(kernel), bytes.fromhex("30 ffffffffff 01"))


@each_form
def test_it_stops_where_the_replies_have_no_room(kernel: ModuleType) -> None:
    check = checker(kernel)
    data = bytearray(frame(0, 0, qos=1, packet_id=1) + frame(0, 1, qos=1, packet_id=2))
    taken = check.take(data, len(data), bytearray(7), 0, 0)
    assert taken == len(data) // 2
    assert check.out_end == 4


@each_form
@given(cuts=st.lists(st.integers(0, 700), max_size=12))
def test_however_the_stream_is_cut_the_counts_and_replies_are_the_same(kernel: ModuleType, cuts: list[int]) -> None:
    large = b"\x30\x80\x02" + bytes(256)
    stream = b"".join(
        [frame(0, 0), frame(1, 0, qos=1, packet_id=9), large, b"\xd0\x00", frame(0, 2), frame(2, 0, qos=2),
         bytes.fromhex("4002 0001 5002 0002"), frame(0, 1)]
    )  # fmt: skip
    whole = checker(kernel)
    taken, expected = take(whole, stream)
    assert taken == len(stream)
    pieces, tail, replies = checker(kernel), b"", b""
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    for start, end in pairwise(places):
        data = tail + stream[start:end]
        taken, more = take(pieces, data)
        tail, replies = data[taken:], replies + more
    assert (counts(pieces), replies, tail) == (counts(whole), expected, b"")


@each_form
@given(data=st.binary(max_size=300))
def test_no_bytes_make_it_read_past_their_end(kernel: ModuleType, data: bytes) -> None:
    check = checker(kernel)
    try:
        taken, _ = take(check, data)
    except ValueError:
        return
    assert 0 <= taken <= len(data)
