"""The permissions of one client: allowed and denied filters for each action. Deny takes precedence.

Clients with the same filters share one `Permit`; clients that differ only in filters of their own share the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from rumq.auth.filters import FilterSet

Action: TypeAlias = Literal["publish", "subscribe", "replay", "retain", "will"]
ACTIONS: tuple[Action, ...] = ("publish", "subscribe", "replay", "retain", "will")
Reach: TypeAlias = Literal["all", "some", "none"]


class Scope(NamedTuple):
    """The allowed and denied filters of one action, as sets that clients share and sets of the client's own."""

    allowed: tuple[FilterSet, ...]
    denied: tuple[FilterSet, ...]

    def has(self, topic: str) -> bool:
        return any(each.match(topic) for each in self.allowed) and not any(each.match(topic) for each in self.denied)

    def reach(self, topic_filter: str) -> Reach:
        """How much of the topics that a filter matches is allowed."""
        if any(each.cover(topic_filter) for each in self.denied):
            return "none"
        if not any(each.overlap(topic_filter) for each in self.allowed):
            return "none"
        is_covered = any(each.cover(topic_filter) for each in self.allowed)
        if is_covered and not any(each.overlap(topic_filter) for each in self.denied):
            return "all"
        return "some"


class ReceivePermit:
    """Permission to receive live messages, or replayed ones: `subscription.Permit`. Holds no `Permit` alive."""

    __slots__ = ("_scopes",)

    def __init__(self, *scopes: Scope) -> None:
        self._scopes = scopes

    def may_receive(self, topic: str) -> bool:
        return all(scope.has(topic) for scope in self._scopes)


class Permit:
    """quiet: a subscription that matches nothing allowed is granted all the same; topics: cache of its user"""

    __slots__ = ("__weakref__", "_scopes", "live", "past", "quiet", "topics")

    def __init__(self, scopes: Mapping[Action, Scope], *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._scopes = scopes
        self.topics: Any = None  # `rumq.session.protocol.authorization`: topics that may be published to
        self.live = ReceivePermit(scopes["subscribe"])
        self.past = ReceivePermit(scopes["subscribe"], scopes["replay"])

    def may(self, action: Action, topic: str) -> bool:
        return self._scopes[action].has(topic)

    def reach(self, action: Action, topic_filter: str) -> Reach:
        """How much of the topics that a filter matches may be received; a replay goes on live, so it needs both."""
        if action == "replay":
            both = (self._scopes["subscribe"].reach(topic_filter), self._scopes["replay"].reach(topic_filter))
            return "none" if "none" in both else "some" if "some" in both else "all"
        return self._scopes[action].reach(topic_filter)
