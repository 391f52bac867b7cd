"""The permits in use, each once: clients with equal permissions share one, which is freed with the last of them.

A rule with %c makes filters of each client's own. They are stored apart from those that clients share, so that a client
costs the memory of its own filters, and only while it is connected or has a session."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakValueDictionary

from rumq.auth.filters import FilterSet
from rumq.auth.permit import ACTIONS, Action, Permit, Scope


class Granted:
    """The filters that the rules grant one client. shared: as written in the rules; own: with its name expanded"""

    __slots__ = ("own", "shared")

    def __init__(self) -> None:
        self.shared: dict[tuple[Action, bool], list[str]] = {}
        self.own: dict[tuple[Action, bool], list[str]] = {}

    def add(self, actions: Iterable[Action], denies: bool, shared: list[str], own: list[str]) -> None:
        for action in actions:
            if shared:
                self.shared.setdefault((action, denies), []).extend(shared)
            if own:
                self.own.setdefault((action, denies), []).extend(own)


class Permits:
    """Permits with at least one reference."""

    def __init__(self, *, quiet: bool) -> None:
        """quiet: as of `Permit`"""
        self._quiet = quiet
        self._sets: WeakValueDictionary[tuple[str, ...], FilterSet] = WeakValueDictionary()
        self._permits: WeakValueDictionary[tuple[Scope, ...], Permit] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._permits)

    def permit_for(self, granted: Granted) -> Permit:
        """The permit with these filters; the same object while there is a reference to it."""
        scopes = tuple(
            Scope(self._sets_of(granted, action, False), self._sets_of(granted, action, True)) for action in ACTIONS
        )
        permit = self._permits.get(scopes)
        if permit is None:
            permit = self._permits[scopes] = Permit(dict(zip(ACTIONS, scopes, strict=True)), quiet=self._quiet)
        return permit

    def _sets_of(self, granted: Granted, action: Action, denies: bool) -> tuple[FilterSet, ...]:
        found = (each.get((action, denies)) for each in (granted.shared, granted.own))
        return tuple(self._set(tuple(filters)) for filters in found if filters)

    def _set(self, filters: tuple[str, ...]) -> FilterSet:
        known = self._sets.get(filters)
        if known is None:
            known = self._sets[filters] = FilterSet(filters)
        return known
