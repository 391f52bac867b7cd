"""One view for all connections of a shard: what a turn sets, each of them reads."""

from rumq.session.ports.backpressure import BackpressureBits
from rumq.session.ports.clock import TurnClock
from rumq.session.ports.turn_view import TurnView


def test_what_a_turn_sets_is_seen_through_it() -> None:
    clock, bits = TurnClock(), BackpressureBits()
    view = TurnView(clock, [], bits)
    clock.monotonic, bits.crowded = 7.0, 2
    assert (view.clock.monotonic, view.backpressure.crowded, view.batches) == (7.0, 2, [])
