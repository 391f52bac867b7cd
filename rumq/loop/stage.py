"""A part of a shard that has something to do when a turn ends: what it may do there, and when it wants a turn."""
# compiled: warm

from __future__ import annotations

from math import inf


class Stage:
    """It confines what goes wrong in it."""

    __slots__ = ()

    def end_turn(self) -> None:
        """What connections sent in this turn has been routed; nothing has been sent."""
        raise NotImplementedError

    def end_second_step(self) -> None:
        """As `end_turn`, behind a second step of the same turn."""
        self.end_turn()

    def next_deadline(self) -> float:
        """When it wants a turn, whether anything comes or not, monotonic seconds; inf: it needs none of its own."""
        return inf
