"""Who is told of a pump's turns: what stands behind the connections, a shard or an edge. Knows no socket."""
# compiled: hot

from __future__ import annotations

from typing import Any


class TurnHandler:
    """What is done before the reading and before the sending of a turn, and about faults."""

    __slots__ = ()

    def begin_turn(self) -> float:
        """returns: the time of this turn, monotonic seconds"""
        raise NotImplementedError

    def end_turn(self) -> None:
        raise NotImplementedError

    def end_quiet_turn(self) -> None:
        """As `end_turn`, if nothing has come that changes anything: PINGREQs, and PUBACKs that nobody waits for."""
        raise NotImplementedError

    def drained(self, connection: Any) -> None:
        """The outbox of a connection has room again."""
        raise NotImplementedError

    def crashed(self, connection: Any) -> None:
        """Report the exception that is being handled, and end the handler of that connection."""
        raise NotImplementedError

    def failed(self, task: str) -> None:
        """Report the exception that is being handled, which concerns no connection."""
        raise NotImplementedError

    def seconds_to_next_deadline(self) -> float:
        """How long the next turn may wait for something to be ready."""
        raise NotImplementedError
