"""A byte stream is cut into the same frames however it arrives. MQTT 5.0, 1.5.5 and 2.1.4."""

import pytest

from rumq.mqtt.errors import MalformedPacket, PacketTooLarge
from rumq.mqtt.frames import PACKET_BYTES_MAX, Frame, FrameReader, frame_at
from rumq.mqtt.reasons import Reason

# Table 1-1 of 1.5.5: the least and the greatest value of each number of bytes.
LENGTHS = [
    ("00", 0),
    ("7F", 127),
    ("80 01", 128),
    ("FF 7F", 16_383),
    ("80 80 01", 16_384),
    ("FF FF 7F", 2_097_151),
    ("80 80 80 01", 2_097_152),
    ("FF FF FF 7F", 268_435_455),
]


@pytest.mark.parametrize(("encoded", "length"), LENGTHS)
@pytest.mark.parametrize("version", [0, 3, 4, 5])
def test_a_remaining_length_is_read_as_the_standard_tabulates_it(encoded: str, length: int, version: int) -> None:
    buffer = b"xx\x30" + bytes.fromhex(encoded)
    assert frame_at(buffer, 2, len(buffer), version=version) == (len(buffer) - 2, length)


@pytest.mark.parametrize(("encoded", "length"), LENGTHS)
def test_a_fixed_header_that_is_not_whole_asks_for_more(encoded: str, length: int) -> None:
    buffer = b"\x30" + bytes.fromhex(encoded) + b"\0"
    for end in range(len(buffer) - 1):
        assert frame_at(buffer, 0, end) is None


def test_bytes_behind_the_end_are_not_looked_at() -> None:
    assert frame_at(memoryview(b"\x30\x02"), 0, 1) is None


@pytest.mark.parametrize("encoded", ["80 80 80 80", "FF FF FF FF 01", "80 80 80 80 00"])
def test_a_remaining_length_of_five_bytes_is_malformed_before_the_fifth_is_there(encoded: str) -> None:
    buffer = b"\x30" + bytes.fromhex(encoded)
    assert frame_at(buffer, 0, 4) is None
    with pytest.raises(MalformedPacket):
        frame_at(buffer, 0, 5)


@pytest.mark.parametrize("encoded", ["80 00", "FF 00", "80 80 00", "81 80 80 00"])
def test_a_remaining_length_longer_than_it_needs_is_malformed_in_5_and_legal_before(encoded: str) -> None:
    """1.5.5 asks for the fewest bytes; 3.1.1 does not, and has clients that patch the length in later."""
    buffer = b"\x30" + bytes.fromhex(encoded)
    with pytest.raises(MalformedPacket):
        frame_at(buffer, 0, len(buffer), version=5)
    for version in (0, 3, 4):
        assert frame_at(buffer, 0, len(buffer), version=version) == (len(buffer), buffer[1] & 0x7F)


def test_a_faulty_frame_raises_after_the_good_ones_before_it_and_ever_after() -> None:
    reader = FrameReader()
    reader.receive(b"\xc0\0\xd0\0\x30\xff\xff\xff\xff\x01")
    frames = reader.frames()
    assert [next(frames), next(frames)] == [Frame(0xC0, b""), Frame(0xD0, b"")]
    for _ in range(2):
        with pytest.raises(MalformedPacket):
            next(frames)
        reader.receive(b"\xc0\0")
        frames = reader.frames()


def test_a_packet_too_large_is_refused_before_its_body_is_there() -> None:
    reader = FrameReader(packet_bytes_max=10)
    reader.receive(b"\x30\x08" + bytes(8))
    assert list(reader.frames()) == [Frame(0x30, bytes(8))]
    reader.receive(b"\x30\x09")
    with pytest.raises(PacketTooLarge) as caught:
        list(reader.frames())
    assert caught.value.reason == Reason.PACKET_TOO_LARGE
    assert caught.value.message == "a packet of 11 bytes, the limit is 10"


def test_the_whole_packet_counts_towards_its_limit() -> None:
    """MQTT 5.0, 3.1.2.11.4: the size of a packet is its total number of bytes, as 2.1.4 defines it."""
    reader = FrameReader(packet_bytes_max=131)
    reader.receive(b"\x30\x80\x01" + bytes(128) + b"\x30\x81\x01")
    frames = reader.frames()
    assert next(frames) == Frame(0x30, bytes(128))
    with pytest.raises(PacketTooLarge):
        next(frames)


def test_without_a_limit_the_largest_packet_of_mqtt_is_waited_for() -> None:
    reader = FrameReader()
    reader.receive(b"\x30\xff\xff\xff\x7f")
    assert list(reader.frames()) == [] and reader.buffered_bytes == 5
    assert PACKET_BYTES_MAX == 268_435_460


def test_a_frame_can_be_left_where_it_is_and_taken_later() -> None:
    reader = FrameReader()
    reader.receive(b"\xc0\0\xd0\0")
    for frame in reader.frames():
        assert frame == Frame(0xC0, b"")
        break
    reader.receive(b"\xe0\0")
    assert [frame.first_byte for frame in reader.frames()] == [0xD0, 0xE0]


def test_bytes_that_arrive_while_frames_are_taken_belong_to_the_same_stream() -> None:
    reader = FrameReader()
    reader.receive(b"\xc0\0\xd0")
    frames = reader.frames()
    assert next(frames).first_byte == 0xC0
    reader.receive(b"\0")
    assert next(frames).first_byte == 0xD0
    assert list(frames) == [] and reader.buffered_bytes == 0


def test_the_version_holds_from_the_frame_after_it_was_set() -> None:
    reader = FrameReader()
    reader.receive(b"\xc0\x80\0\xc0\x80\0")
    frames = reader.frames()
    assert next(frames) == Frame(0xC0, b"")
    reader.version = 5
    with pytest.raises(MalformedPacket):
        next(frames)
