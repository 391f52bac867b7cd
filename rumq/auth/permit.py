"""What one client may do: filters it may use and filters it may not, for each action. What is refused wins.

Clients with the same filters share one `Permit`. Knows no rule, no client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from rumq.auth.filters import FilterSet

Action: TypeAlias = Literal["publish", "subscribe", "replay", "retain", "will"]
ACTIONS: tuple[Action, ...] = ("publish", "subscribe", "replay", "retain", "will")
Reach: TypeAlias = Literal["all", "some", "none"]
Filters: TypeAlias = Mapping[Action, tuple[tuple[str, ...], tuple[str, ...]]]


class Sight:
    """What may be received live, or of the past: `router.subscription.Permit`."""

    __slots__ = ("_actions", "_permit")

    def __init__(self, permit: Permit, *actions: Action) -> None:
        self._permit, self._actions = permit, actions

    def may_receive(self, topic: str) -> bool:
        return all(self._permit.may(action, topic) for action in self._actions)


class Permit:
    """quiet: a subscription that brings nothing is granted all the same"""

    __slots__ = ("_allowed", "_denied", "live", "past", "quiet", "topics")

    def __init__(self, filters: Filters, *, quiet: bool = False) -> None:
        """filters: of each action (allowed, denied)"""
        self.quiet = quiet
        self._allowed = {action: FilterSet(allowed) for action, (allowed, _) in filters.items()}
        self._denied = {action: FilterSet(denied) for action, (_, denied) in filters.items()}
        self.topics: Any = None  # free for who publishes: what is known to be allowed
        self.live = Sight(self, "subscribe")
        self.past = Sight(self, "subscribe", "replay")

    def may(self, action: Action, topic: str) -> bool:
        return self._allowed[action].match(topic) and not self._denied[action].match(topic)

    def reach(self, action: Action, topic_filter: str) -> Reach:
        """How much of what a filter matches may be received; a replay goes on live, so it needs both."""
        if action == "replay":
            both = (self._reach("subscribe", topic_filter), self._reach("replay", topic_filter))
            return "none" if "none" in both else "some" if "some" in both else "all"
        return self._reach(action, topic_filter)

    def _reach(self, action: Action, topic_filter: str) -> Reach:
        allowed, denied = self._allowed[action], self._denied[action]
        if denied.cover(topic_filter) or not allowed.overlap(topic_filter):
            return "none"
        if allowed.cover(topic_filter) and not denied.overlap(topic_filter):
            return "all"
        return "some"
