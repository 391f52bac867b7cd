"""How many sessions may outlive their connections, and how many of them one holder may have. docs/security.md.

A holder is a user, or the address (IPv6: the /64) of clients without a name. One may have as many sessions as are still
free: alone it gets half of all, two that want all get a third each, and there is always room for somebody new.
Knows no session but by its holder."""

from __future__ import annotations

from collections import Counter

from rumq.auth import quota_holder

UNKNOWN = ""  # of sessions that an earlier run left, until their clients come back


def holder_of(user: str | None, address: str) -> str:
    """Who a session counts for."""
    if user is not None:
        return f"user {user}"
    return f"address {quota_holder.holder_of(address)}"


class PersistentSessions:
    """Counts them: `take` when one begins to last, or is another's from now on; `give_back` when it has ended."""

    def __init__(self) -> None:
        self.count = 0
        self._of_holder: Counter[str] = Counter()

    def why_not(self, holder: str, sessions_max: int, holder_max: int = 0) -> str:
        """Why the holder may not have one more; empty: it may. holder_max: of it alone; 0: as many as are free"""
        free, held = sessions_max - self.count, self._of_holder.get(holder, 0)
        if free <= 0:
            return f"there are {sessions_max} lasting sessions and may be no more"
        if holder_max and held >= holder_max:
            return f"{holder} has {held} lasting sessions and may have no more"
        if not holder_max and held >= free:
            return f"{holder} has {held} of {sessions_max} lasting sessions, and what is free is for others"
        return ""

    def take(self, before: str | None, holder: str) -> None:
        """before: whose it was until now; None: it is new"""
        if before is not None:
            self.give_back(before)
        self.count += 1
        self._of_holder[holder] += 1

    def give_back(self, holder: str) -> None:
        self.count -= 1
        self._of_holder[holder] -= 1
        if not self._of_holder[holder]:
            del self._of_holder[holder]
