"""How often the processes of each shard on this node have ended of late: one that crashes, or is deposed, ends.

Knows no clock: times are arguments, in seconds."""

from __future__ import annotations

REMEMBERED_SECONDS, KEPT = 60.0, 16


class ProcessEnds:
    def __init__(self) -> None:
        self._ended_at: dict[int, list[float]] = {}

    def note(self, shard: int, now: float) -> None:
        self._ended_at[shard] = [*self._ended_at.get(shard, ()), now][-KEPT:]

    def within_a_minute(self, now: float) -> dict[int, int]:
        """By shard."""
        return {shard: sum(now - at < REMEMBERED_SECONDS for at in ended) for shard, ended in self._ended_at.items()}
