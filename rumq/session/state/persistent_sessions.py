"""The number of sessions that outlive their connections, in all and of each holder. docs/guides/security.md.

A holder is a user, or the address (IPv6: the /64) of clients without a user name. It may have as many sessions as are
still free: a single holder gets half of all, two that want all get a third each, and a new holder always finds room."""
# compiled: warm

from __future__ import annotations

from collections import Counter

from rumq.auth import quota_holder

UNKNOWN = ""  # of sessions that an earlier run left, until their clients come back


def holder_of(user: str | None, address: str) -> str:
    """The holder that a session is counted for."""
    if user is not None:
        return f"user {user}"
    return f"address {quota_holder.holder_of(address)}"


class PersistentSessions:
    def __init__(self) -> None:
        self.count = 0
        self._of_holder: Counter[str] = Counter()

    def refusal(self, holder: str, sessions_max: int, holder_max: int = 0) -> str:
        """Why the holder may not have one more; empty: it may. holder_max: of this holder; 0: as many as are free"""
        free, held = sessions_max - self.count, self._of_holder.get(holder, 0)
        if free <= 0:
            return f"there are {sessions_max} lasting sessions and may be no more"
        if holder_max and held >= holder_max:
            return f"{holder} has {held} lasting sessions and may have no more"
        if not holder_max and held >= free:
            return f"{holder} has {held} of {sessions_max} lasting sessions, and what is free is for others"
        return ""

    def add(self, holder: str, previous: str | None = None) -> None:
        """Count a session for `holder`. previous: the holder that it was counted for; None: it is new"""
        if previous is not None:
            self.remove(previous)
        self.count += 1
        self._of_holder[holder] += 1

    def remove(self, holder: str) -> None:
        self.count -= 1
        self._of_holder[holder] -= 1
        if not self._of_holder[holder]:
            del self._of_holder[holder]
