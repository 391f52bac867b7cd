"""Match one topic against the filters of all groups in bounded pieces, over several turns if need be.

Subscriptions that change meanwhile are applied to the match, so it is correct when it ends, after as much work as there
was when it began: changing subscriptions cannot keep it from ending."""

from __future__ import annotations

from router.reader import Group
from router.trie import FilterTrie, Walk

VISITS_A_TURN = 1 << 14  # for all matches together: some ten milliseconds
UNDER_WAY_MAX = 64  # matches that continue in later turns
MATCH_VISITS = 4  # the cost of a match beside the nodes it visits


class TopicMatching:
    """First the filters that match, then the groups that they lead to, then what each group gets."""

    __slots__ = ("_filters_of", "_levels", "_numbers", "_plain", "_todo", "_walk", "topic")

    def __init__(self, topic: str, walk: Walk) -> None:
        self.topic = topic
        self._levels = walk.levels
        self._plain = walk.is_plain
        self._walk: Walk | None = walk
        self._filters_of: dict[Group, dict[str, None]] = {}
        self._numbers: dict[Group, int] = {}
        self._todo: dict[Group, None] = {}

    def go_on(self, trie: FilterTrie, by_filter: dict[str, dict[Group, None]], visits_max: int) -> int:
        """Do a piece; returns the visits used, at most `visits_max` and one group's filters. When `over`: `route`"""
        spent = 0
        walk = self._walk
        if walk is not None:
            while not walk.over and spent < visits_max:
                # What is found is applied at once: later changes are reported through `changed`.
                spent += trie.go_on(walk, min(64, visits_max - spent))
                for topic_filter in walk.found:
                    for group in by_filter.get(topic_filter, ()):
                        self._filters_of.setdefault(group, {})[topic_filter] = None
                        self._todo[group] = None
                        spent += 1
                walk.found.clear()
            if not walk.over:
                return spent
            self._walk = None
        while self._todo and spent < visits_max:
            group = next(iter(self._todo))
            del self._todo[group]
            filters = self._filters_of.get(group)
            if filters:
                self._numbers[group] = group.form_number(list(filters), self.topic)
                spent += len(filters)
            else:
                self._numbers.pop(group, None)
        return spent

    @property
    def over(self) -> bool:
        return self._walk is None and not self._todo

    @property
    def route(self) -> tuple[tuple[Group, int], ...]:
        """Each group that wants the topic, with the number of the form it gets, or DENIED."""
        return tuple(self._numbers.items())

    def changed(self, topic_filter: str, group: Group, leads: bool) -> None:
        """A filter was added to a group, with whatever options, or removed from it."""
        if not self._matches(topic_filter):
            return
        if leads:
            self._filters_of.setdefault(group, {})[topic_filter] = None
        elif group in self._filters_of:
            self._filters_of[group].pop(topic_filter, None)
        self._todo[group] = None

    def renumbered(self, group: Group) -> None:
        """The forms of a group were renumbered."""
        if group in self._filters_of:
            self._todo[group] = None

    def _matches(self, topic_filter: str) -> bool:
        if not self._plain and topic_filter[:1] in ("+", "#"):
            return False
        levels, wanted = self._levels, topic_filter.split("/")
        if wanted[-1] == "#":
            del wanted[-1]
            if len(levels) < len(wanted):
                return False
        elif len(levels) != len(wanted):
            return False
        return all(want == "+" or want == level for want, level in zip(wanted, levels, strict=False))
