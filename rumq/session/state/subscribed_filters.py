"""The filters of one session, as its client wrote them, and their cost in bytes and wildcard levels. MQTT 5.0, 3.8.

Memory grows with the levels and the length of a filter; the cost of matching a new topic grows with the levels from
the first wildcard on. The sums are estimates, the same for a filter each time it is added or removed."""
# compiled: warm

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import cast

from rumq.session.flow_control.limits import Limits
from rumq.session.state.filter_totals import FilterTotals

FILTER_BYTES, LEVEL_BYTES, COPIES = 1024, 256, 3


def filter_bytes(topic_filter: str) -> int:
    """The memory that a filter takes, estimated."""
    return FILTER_BYTES + LEVEL_BYTES * (topic_filter.count("/") + 1) + COPIES * len(topic_filter.encode())


def wildcard_levels(topic_filter: str) -> int:
    """The levels of a filter from its first wildcard on: those before it are one path for any topic."""
    at = min((where for sign in "+#" if (where := topic_filter.find(sign)) >= 0), default=-1)
    return 0 if at < 0 else topic_filter.count("/", at) + 1


class SubscribedFilters:
    """A set of filters. bytes, wildcard_levels: sums over all. Cost of a change: the length of the filter"""

    __slots__ = ("_filters", "_holder", "_totals", "bytes", "wildcard_levels")

    def __init__(self, filters: Iterable[str] = ()) -> None:
        self._filters: dict[str, bool] = {}  # whether it is a replay, which is not always visible in the text
        self.bytes = self.wildcard_levels = 0
        self._totals: FilterTotals | None = None
        self._holder = ""
        for each in filters:
            self.add(each)

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, topic_filter: object) -> bool:
        return topic_filter in self._filters

    def __iter__(self) -> Iterator[str]:
        return iter(self._filters)

    def items(self) -> list[tuple[str, bool]]:
        """Each filter, and whether it is a replay."""
        return list(self._filters.items())

    def count_for(self, holder: str, totals: FilterTotals | None) -> None:
        """Count these filters, and those that come, for a holder; None: for nobody any more."""
        if (holder, totals) == (self._holder, self._totals):
            return
        self._tell(-self.bytes, -self.wildcard_levels)
        self._holder, self._totals = holder, totals
        self._tell(self.bytes, self.wildcard_levels)

    def _tell(self, size: int, levels: int) -> None:
        if self._totals is not None:
            self._totals.add(self._holder, size, levels)

    def _change(self, size: int, levels: int) -> None:
        self.bytes += size
        self.wildcard_levels += levels
        self._tell(size, levels)

    def add(self, topic_filter: str, *, is_replay: bool = False) -> None:
        known = topic_filter in self._filters
        self._filters[topic_filter] = is_replay
        if not known:
            self._change(filter_bytes(topic_filter), wildcard_levels(topic_filter))

    def discard(self, topic_filter: str) -> None:
        if topic_filter in self._filters:
            del self._filters[topic_filter]
            self._change(-filter_bytes(topic_filter), -wildcard_levels(topic_filter))

    def refusal(self, topic_filter: str, limits: Limits) -> str:
        """Why the session, or its holder, may not have this filter as well; empty: it may."""
        if topic_filter in self._filters:
            return ""
        if len(self._filters) >= limits.subscriptions_max:
            return f"a session may have {limits.subscriptions_max} subscriptions"
        size, levels = filter_bytes(topic_filter), wildcard_levels(topic_filter)
        if self.bytes + size > limits.subscriptions_bytes_max:
            return f"the subscriptions of a session may take {limits.subscriptions_bytes_max} bytes"
        if self.wildcard_levels + levels > limits.wildcard_levels_max:
            return f"the filters of a session may have {limits.wildcard_levels_max} levels from a wildcard on"
        return "" if self._totals is None else self._totals.refusal(self._holder, size, levels, limits)


NO_FILTERS = SubscribedFilters()
"""Of all sessions without subscriptions. It cannot be added to."""
NO_FILTERS._filters = cast(dict[str, bool], MappingProxyType({}))
