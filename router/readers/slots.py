"""The code of a message in an in-flight window and in the session journal: reader number << 6 | partition, of 32 bits.

Bit 31: it was sent as a retained message. rumq/mqtt/kernels/window.py repeats the mask;
tests/mqtt/kernels/test_constants.py compares them."""

PARTITION_BITS = 6
PARTITION_MASK = (1 << PARTITION_BITS) - 1
RETAINED_CODE = 1 << 31
READERS_MAX = (1 << 31 - PARTITION_BITS) - 1  # numbers of a session's readers


def reader_of(code: int) -> int:
    """The number of the reader that the message was sent for."""
    return (code & ~RETAINED_CODE) >> PARTITION_BITS


def partition_of(code: int) -> int:
    return code & PARTITION_MASK
