"""What one client may do: filters it may use and filters it may not, for each action. What is refused wins.

Clients with the same filters share one `Permit`; those of which only some are their own share the others. Knows no
rule, no client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from rumq.auth.filters import FilterSet

Action: TypeAlias = Literal["publish", "subscribe", "replay", "retain", "will"]
ACTIONS: tuple[Action, ...] = ("publish", "subscribe", "replay", "retain", "will")
Reach: TypeAlias = Literal["all", "some", "none"]


class Scope(NamedTuple):
    """Of one action: the filters that allow it and those that deny it, each as sets of which some are everybody's."""

    allowed: tuple[FilterSet, ...]
    denied: tuple[FilterSet, ...]

    def has(self, topic: str) -> bool:
        return any(each.match(topic) for each in self.allowed) and not any(
            each.match(topic) for each in self.denied
        )

    def reach(self, topic_filter: str) -> Reach:
        """How much of what a filter matches is in it."""
        if any(each.cover(topic_filter) for each in self.denied):
            return "none"
        if not any(each.overlap(topic_filter) for each in self.allowed):
            return "none"
        is_covered = any(each.cover(topic_filter) for each in self.allowed)
        if is_covered and not any(each.overlap(topic_filter) for each in self.denied):
            return "all"
        return "some"


class Sight:
    """What may be received live, or of the past: `router.subscription.Permit`. It does not keep its permit alive."""

    __slots__ = ("_scopes",)

    def __init__(self, *scopes: Scope) -> None:
        self._scopes = scopes

    def may_receive(self, topic: str) -> bool:
        return all(scope.has(topic) for scope in self._scopes)


class Permit:
    """quiet: a subscription that brings nothing is granted all the same"""

    __slots__ = ("__weakref__", "_scopes", "live", "past", "quiet", "topics")

    def __init__(self, scopes: Mapping[Action, Scope], *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._scopes = scopes
        self.topics: Any = None  # free for who publishes: what is known to be allowed
        self.live = Sight(scopes["subscribe"])
        self.past = Sight(scopes["subscribe"], scopes["replay"])

    def may(self, action: Action, topic: str) -> bool:
        return self._scopes[action].has(topic)

    def reach(self, action: Action, topic_filter: str) -> Reach:
        """How much of what a filter matches may be received; a replay goes on live, so it needs both."""
        if action == "replay":
            both = (self._scopes["subscribe"].reach(topic_filter), self._scopes["replay"].reach(topic_filter))
            return "none" if "none" in both else "some" if "some" in both else "all"
        return self._scopes[action].reach(topic_filter)
