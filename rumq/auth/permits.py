"""Permits in use, each once: clients that may do the same have the same one, which goes with the last of them.

A rule with %c makes filters of each client's own. They are kept apart from those that a rule gives to many, so that a
client costs what is its own, and only while it is connected or has a session. Knows no rule."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakValueDictionary

from rumq.auth.filters import FilterSet
from rumq.auth.permit import ACTIONS, Action, Permit, Scope


class Granted:
    """What rules give one client. shared: filters as the rules have them; own: with its name filled in"""

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
    """Those that somebody holds."""

    def __init__(self, *, quiet: bool) -> None:
        """quiet: as of `Permit`"""
        self._quiet = quiet
        self._sets: WeakValueDictionary[tuple[str, ...], FilterSet] = WeakValueDictionary()
        self._permits: WeakValueDictionary[tuple[Scope, ...], Permit] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._permits)

    def of(self, granted: Granted) -> Permit:
        """The permit for this much; the same object as long as somebody holds it."""
        scopes = tuple(
            Scope(self._sets_of(granted, action, False), self._sets_of(granted, action, True))
            for action in ACTIONS
        )
        permit = self._permits.get(scopes)
        if permit is None:
            permit = self._permits[scopes] = Permit(
                dict(zip(ACTIONS, scopes, strict=True)), quiet=self._quiet
            )
        return permit

    def _sets_of(self, granted: Granted, action: Action, denies: bool) -> tuple[FilterSet, ...]:
        found = (each.get((action, denies)) for each in (granted.shared, granted.own))
        return tuple(self._set(tuple(filters)) for filters in found if filters)

    def _set(self, filters: tuple[str, ...]) -> FilterSet:
        known = self._sets.get(filters)
        if known is None:
            known = self._sets[filters] = FilterSet(filters)
        return known
