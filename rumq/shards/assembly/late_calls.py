"""Calls that go round in a circle of parts: a part calls one that is built later. All of them stand here.

`build_shard` binds each once both parts are there, before the first turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Generic, ParamSpec, TypeVar

from rumq.session.flow_control.limits import Limits
from rumq.session.journal.entries import KeptValue, StandingOrder
from rumq.shards.bus import messages as m

P = ParamSpec("P")
R = TypeVar("R")


class LateCall(Generic[P, R]):
    """A call that is bound later."""

    __slots__ = ("_call",)

    def __init__(self) -> None:
        self._call: Callable[P, R] | None = None

    def bind(self, call: Callable[P, R]) -> None:
        """Once."""
        assert self._call is None
        self._call = call

    @property
    def is_bound(self) -> bool:
        return self._call is not None

    def __call__(self, *args: P.args, **named: P.kwargs) -> R:
        assert self._call is not None, "called before the shard was built"
        return self._call(*args, **named)


@dataclass(frozen=True, slots=True)
class LateCalls:
    """limits: those in force, which a reload changes: clients are served by way of the topics whose cost they limit
    standing: orders in force and kept values, for the journal, in which new ones are written
    say_all: that a partition refuses records, for other shards, which say the same of theirs
    leave_behind: for another shard's removal of segments; ours asks the other shards in turn
    tally: takes the numbers of other shards, which are published beside those of this one"""

    limits: LateCall[[], Limits] = field(default_factory=LateCall)
    standing: LateCall[[], Iterator[StandingOrder | KeptValue]] = field(default_factory=LateCall)
    say_all: LateCall[[m.AnyMessage], None] = field(default_factory=LateCall)
    leave_behind: LateCall[[int, int, Callable[[], None]], None] = field(default_factory=LateCall)
    tally: LateCall[[m.Tally], None] = field(default_factory=LateCall)

    def unbound(self) -> list[str]:
        """Those that nobody has bound."""
        return [each.name for each in fields(self) if not getattr(self, each.name).is_bound]
