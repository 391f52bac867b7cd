"""What the publisher's kernel writes is what MQTT and the bench's payload say. MQTT 3.1.1, 3.3."""

from types import ModuleType

import pytest

from bench.connections import publish_packet
from bench.load.load import FILLER, PAYLOAD_BYTES, STAMP_BYTES
from tests.bench.frames import LOAD, frame, topic_of
from tests.kernel_forms import forms

each_form = pytest.mark.parametrize("kernel", forms("bench.kernels.offer"))


def offer(kernel: ModuleType, qos: int = 0) -> tuple[object, int]:
    templates = [publish_packet(topic_of(1, s), qos, bytes(STAMP_BYTES) + FILLER) for s in range(LOAD.topics)]
    size = len(templates[0])
    return kernel.Offer(b"".join(templates), size, PAYLOAD_BYTES, qos > 0), size


@each_form
def test_frames_carry_publisher_sequence_and_time_and_go_round_the_topics(kernel: ModuleType) -> None:
    made, size = offer(kernel)
    out = bytearray(10 * size)
    end = made.write(out, 0, 3, 1, 77)  # type: ignore[attr-defined]
    assert end == 3 * size
    assert bytes(out[:end]) == b"".join(frame(1, sequence, sent_ns=77) for sequence in range(3))


@each_form
def test_packet_ids_count_from_1_to_65535_and_start_again(kernel: ModuleType) -> None:
    """MQTT 3.1.1, 2.3.1: a packet id is never 0."""
    made, size = offer(kernel, qos=1)
    out = bytearray(65_537 * size)
    made.write(out, 0, 65_537, 1, 0)  # type: ignore[attr-defined]
    ids = [int.from_bytes(out[i * size + 11 : i * size + 13], "big") for i in (0, 1, 65_534, 65_535)]
    assert ids == [1, 2, 65_535, 1]


@each_form
def test_it_writes_only_what_fits_and_goes_on_from_there(kernel: ModuleType) -> None:
    made, size = offer(kernel)
    out = bytearray(2 * size + size // 2)
    assert made.write(out, 5, 100, 1, 0) == 5 + 2 * size  # type: ignore[attr-defined]
    assert made.write(out, 0, 1, 1, 0) == size  # type: ignore[attr-defined]
    assert bytes(out[:size]) == frame(1, 2)


@each_form
def test_templates_of_unequal_size_are_refused(kernel: ModuleType) -> None:
    with pytest.raises(ValueError, match="whole frames"):
        kernel.Offer(bytes(150), 75 - 1, 64, False)
