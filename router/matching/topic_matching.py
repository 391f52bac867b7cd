"""Match one topic against the filters of all groups in bounded pieces, over several turns if need be.

Subscriptions that change meanwhile are applied to the match, so it is correct when it ends, after as much work as there
was when it began: changing subscriptions cannot keep it from ending."""
# compiled: warm

from __future__ import annotations

from array import array
from typing import Any

from router.kernels import filter_index as kernel
from router.kernels.filter_index import FilterIndex
from router.kernels.filters import matches
from router.readers.reader import Group, Target

VISITS_A_TURN = 1 << 12  # for all matches together: some tenths of a millisecond
UNDER_WAY_MAX = 16  # matches that continue in later turns: each filter that changes is held against them
MATCH_VISITS = 4  # the cost of a match beside the nodes it visits
FOUND_A_VISIT = 2  # filters that are counted at the cost of a node


class FilterTargets:
    """What a filter leads to that several groups have. by_group: changes as they come and go"""

    __slots__ = ("by_group",)

    def __init__(self, by_group: dict[Group, Target]) -> None:
        self.by_group = by_group


class TopicMatching:
    """First the filters that match, then how many of them lead to what, then what each group gets.

    visits: what it has cost so far; wanted_at: in which turn somebody has asked for it last"""

    __slots__ = (
        "_counted", "_counts", "_found", "_found_early", "_levels", "_name", "_numbers", "_pending", "_plain", "_todo",
        "topic", "visits", "wanted_at",
    )  # fmt: skip

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.visits = MATCH_VISITS
        self.wanted_at = 0
        self._name, self._levels = topic.encode(), topic.split("/")
        self._plain = not topic.startswith("$")
        self._pending = [b""]
        self._found = array("I")  # numbers of filters, each once
        self._counted = 0  # so many of them are in `_counts`
        self._found_early: set[int] = set()  # added before the index was asked: it may give them once more
        self._counts: dict[Group, dict[Target, int]] = {}
        self._numbers: dict[Group, int] = {}
        self._todo: dict[Group, None] = {}

    def go_on(self, index: FilterIndex, visits_max: int) -> int:
        """Do a piece; returns the visits used, at most twice `visits_max` and the targets of one group or filter.

        When `over`: `route`"""
        spent = 0
        if self._pending:
            found, self._pending, spent = index.walk(self._levels, self._plain, self._pending, visits_max)
            if self._found_early:
                found = array("I", [number for number in found if number not in self._found_early])
            self._found += found
        while self._counted < len(self._found) and spent < visits_max:
            spent += self._count_some(index.targets, visits_max - spent)
        if not self._pending and self._counted == len(self._found):
            spent += self._number_some(visits_max - spent)
        self.visits += spent
        return spent

    def _count_some(self, targets: list[Any], filters_max: int) -> int:
        """Count what the next filters lead to; returns the visits used."""
        first = self._counted
        stop = self._counted = min(len(self._found), first + filters_max)
        spent = (stop - first) // FOUND_A_VISIT
        for target, count in kernel.tally(self._found, first, stop, targets).items():
            if isinstance(target, FilterTargets):
                for one in target.by_group.values():
                    self._count(one, count)
                spent += len(target.by_group)
            else:
                self._count(target, count)
                spent += 1
        return spent

    def _number_some(self, visits_max: int) -> int:
        """Number the forms that the next groups get; returns the visits used."""
        spent = 0
        done = []
        for group in self._todo:
            if spent >= visits_max:
                break
            done.append(group)
            counts = self._counts.get(group)
            if counts:
                self._numbers[group] = group.form_for(counts, self.topic)
                spent += len(counts)
            else:
                self._counts.pop(group, None)
                self._numbers.pop(group, None)
        for group in done:
            del self._todo[group]
        return spent

    def _count(self, target: Target, more: int) -> None:
        counts = self._counts.setdefault(target.group, {})
        count = counts.get(target, 0) + more
        if count:
            counts[target] = count
        else:
            del counts[target]
        self._todo[target.group] = None

    @property
    def over(self) -> bool:
        return not self._pending and not self._todo and self._counted == len(self._found)

    @property
    def route(self) -> tuple[tuple[Group, int], ...]:
        """Each group that wants the topic, with the number of the form it gets, or DENIED."""
        return tuple(self._numbers.items())

    def changed(
        self, topic_filter: str, number: int, before: Target | None, after: Target | None, *, is_gone: bool
    ) -> None:
        """What a filter leads to for one group has changed. number: the filter's; None: to nothing

        is_gone: no group has the filter any more"""
        if not matches(topic_filter.encode(), self._name):
            return
        place = kernel.place(number, self._found)
        if place < 0:
            if not is_gone:
                self._found.append(number)
                self._found_early.add(number)
            return
        if place < self._counted:
            if before is not None:
                self._count(before, -1)
            if after is not None:
                self._count(after, 1)
        if is_gone:
            del self._found[place]
            self._found_early.discard(number)
            self._counted -= place < self._counted

    def renumbered(self, group: Group) -> None:
        """The forms of a group were renumbered."""
        if group in self._counts:
            self._todo[group] = None
