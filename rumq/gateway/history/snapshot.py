"""The shards' counters at one moment, and how they have grown since another. A shard that was restarted begins at 0."""

from __future__ import annotations

from dataclasses import dataclass, field

from rumq.admin.figures import ShardFigures

COUNTED_SECONDS_MIN = 0.2  # less than this apart, two counts of sessions are the same one


@dataclass(slots=True)
class FiguresSnapshot:
    """at: monotonic seconds; rates: by shard and counter, kept for as long as sessions are not counted anew"""

    at: float
    shards: list[ShardFigures]
    disk_free_bytes: float
    rates: dict[tuple[int, str], float] = field(default_factory=dict)

    @property
    def log_bytes(self) -> float:
        return sum(each.bytes for shard in self.shards for each in shard.partitions)

    def rate(self, before: FiguresSnapshot, key: str) -> float:
        """Per second, of all shards together."""
        return sum(grown(earlier, later, key) for earlier, later in pairs(before, self)) / (self.at - before.at)

    def counted_rate(self, before: FiguresSnapshot, key: str) -> float:
        """The same of what is counted with the sessions, which many of them make rare: between those counts."""
        total = 0.0
        for earlier, later in pairs(before, self):
            since = before.at - earlier.counted_seconds_ago if earlier is not None else before.at
            seconds = self.at - later.counted_seconds_ago - since
            place = later.shard, key
            if seconds < COUNTED_SECONDS_MIN:
                self.rates[place] = before.rates.get(place, 0.0)
            else:
                self.rates[place] = grown(earlier, later, key) / seconds
            total += self.rates[place]
        return total

    def observed(self, before: FiguresSnapshot, key: str) -> list[int]:
        """Observations by bucket, of all shards together."""
        found: list[int] = []
        for earlier, later in pairs(before, self):
            now = later.histograms[key].counts
            then = earlier.histograms[key].counts if earlier is not None else [0] * len(now)
            found = found or [0] * len(now)
            found = [sum(each) - old for *each, old in zip(found, now, then, strict=True)]
        return found


def pairs(before: FiguresSnapshot, after: FiguresSnapshot) -> list[tuple[ShardFigures | None, ShardFigures]]:
    """Each shard of now with what it was in the same run; None: it has begun since.

    One of a cluster that had not answered before is left out: when it counted what it has is not known."""
    earlier = {(each.shard, each.incarnation): each for each in before.shards}
    found = [(earlier.get((each.shard, each.incarnation)), each) for each in after.shards]
    seconds = after.at - before.at
    return [pair for pair in found if pair[0] is not None or pair[1].gauges["uptime_seconds"] <= seconds + 1.0]


def grown(earlier: ShardFigures | None, later: ShardFigures, key: str) -> float:
    return counter(later, key) - (counter(earlier, key) if earlier is not None else 0.0)


def counter(shard: ShardFigures, key: str) -> float:
    return float(sum(shard.undelivered.values())) if key == "undelivered" else shard.counters[key]
