"""A bit for each partition, as `Wire.touched` has one: so both can be compared."""

from rumq.mqtt.kernels.wire_state import Wire
from rumq.session.ports.backpressure import BackpressureBits

LAST = 1 << 63


def test_the_last_partition_has_a_bit() -> None:
    bits, wire = BackpressureBits(), Wire(False, 1 << 20, 10, 0)
    assert not bits.behind and not bits.crowded
    bits.behind = bits.crowded = wire.touched = LAST | 1
    assert bits.behind & wire.touched == bits.crowded & wire.touched == LAST | 1
