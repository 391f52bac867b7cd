"""Bytes and wildcard levels of the filters of all sessions of a shard, connected or not, and of each holder.

A new topic is matched against the filters of all sessions, so what each may have is not enough: sessions cost little. A
holder (`persistent_sessions.holder_of`) may have as much as is still free: alone it gets half.
docs/guides/security.md."""

from __future__ import annotations

from rumq.session.flow_control.limits import Limits


class FilterTotals:
    """bytes, wildcard_levels: of all holders"""

    def __init__(self) -> None:
        self.bytes = self.wildcard_levels = 0
        self._of_holder: dict[str, tuple[int, int]] = {}

    def add(self, holder: str, size: int, levels: int) -> None:
        """Count bytes and wildcard levels for a holder; less than zero of both when they are gone."""
        self.bytes += size
        self.wildcard_levels += levels
        held_bytes, held_levels = self._of_holder.get(holder, (0, 0))
        held = held_bytes + size, held_levels + levels
        if any(held):
            self._of_holder[holder] = held
        else:
            self._of_holder.pop(holder, None)

    def refusal(self, holder: str, size: int, levels: int, limits: Limits) -> str:
        """Why a session of the holder may not have a filter of this size as well; empty: it may."""
        held_bytes, held_levels = self._of_holder.get(holder, (0, 0))
        return _refusal(
            holder, "levels from a wildcard on", levels, held_levels, self.wildcard_levels,
            limits.all_wildcard_levels_max,
        ) or _refusal(holder, "bytes", size, held_bytes, self.bytes, limits.all_subscriptions_bytes_max)  # fmt: skip


def _refusal(holder: str, unit: str, more: int, held: int, total: int, allowed: int) -> str:
    if total + more > allowed:
        return f"the filters of all sessions may have {allowed} {unit} and have {total}"
    if more and held + more > allowed - total:
        return f"the filters of {holder} have {held} of {allowed} {unit}, and what is free is for others"
    return ""
