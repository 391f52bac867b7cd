"""Clients that are about to join shared groups of other homes: a SUBSCRIBE waits for each home to create the group.

A home that is away for long is not waited for: its group is refused, and other filters of the SUBSCRIBE are served.
What is long, its owner says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from rumq.loop.ports import Call, Placement, Timers
from rumq.shards.bus import messages as m
from rumq.shards.peers.shared_groups import SharedGroups


class Home(Protocol):
    """Another shard that can be asked: `rumq.shards.peers.peer`."""

    def ask(self, question: Callable[[int], m.Question], answered: Callable[[Any, memoryview], None]) -> None: ...


class Joining:
    """Groups of one SUBSCRIBE. waiting: key -> home, of those that no home has answered; refused: given up"""

    __slots__ = ("answered", "groups", "refused", "waiting")

    def __init__(self, groups: Mapping[str, str], waiting: dict[str, int], answered: Call) -> None:
        """groups: key -> plain filter; answered: called for each group, once it is created or given up"""
        self.groups, self.waiting, self.answered = groups, waiting, answered
        self.refused: list[str] = []


class GroupJoins:
    def __init__(
        self, others: Mapping[int, Home], placement: Placement, timers: Timers, groups: SharedGroups,
        is_long_away: Callable[[int], bool],
    ) -> None:  # fmt: skip
        """others: complete before the first question; is_long_away: of a home"""
        self._others, self._placement, self._timers, self._groups = others, placement, timers, groups
        self._is_long_away = is_long_away
        self._waiting: set[Joining] = set()
        self._refused: Counter[str] = Counter()  # keys whose SUBSCRIBE is answered now, without their home

    def __len__(self) -> int:
        """SUBSCRIBEs that wait for a home."""
        return len(self._waiting)

    def begin(self, groups: Mapping[str, str], answered: Call) -> Joining:
        """Have their homes create groups for a client here, which joins them in the call that `settle` comes before."""
        joining = Joining(groups, {key: self._placement.home(key) for key in groups}, answered)
        if groups:
            self._waiting.add(joining)
        for key, home in list(joining.waiting.items()):
            self._groups.will_join(key, groups[key])
            question = partial(m.ShareJoin, key=key, topic_filter=groups[key])
            self._others[home].ask(question, partial(self._created, joining, key))
            if self._is_long_away(home):
                self._timers.next_turn(self.give_up)
        return joining

    def _created(self, joining: Joining, key: str, _: m.Wanted, __: memoryview) -> None:
        if key in joining.waiting:
            self._end(joining, key)
        else:  # nobody has waited for it, and the home has a member in this shard now
            self._groups.has_joined(key)

    def give_up(self) -> None:
        """Have nobody wait for homes that are away for long."""
        for joining in list(self._waiting):
            for key in [key for key, home in joining.waiting.items() if self._is_long_away(home)]:
                joining.refused.append(key)
                self._end(joining, key)

    def _end(self, joining: Joining, key: str) -> None:
        del joining.waiting[key]
        if not joining.waiting:
            self._waiting.discard(joining)
        joining.answered()

    def settle(self, joining: Joining) -> None:
        """All are answered, and the SUBSCRIBE is served now: until the next step it is known which are refused."""
        self._refused.update(joining.refused)
        self._timers.after_step(partial(self._joined, joining))

    def _joined(self, joining: Joining) -> None:
        self._refused -= Counter(joining.refused)
        for key in joining.groups:
            if key not in joining.refused:
                self._groups.has_joined(key)

    def is_refused(self, key: str) -> bool:
        """Whether the SUBSCRIBE that is served now asks for a group that its home has not created."""
        return self._refused[key] > 0
