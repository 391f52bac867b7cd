"""The topic tree, level by level: some topics a turn are grouped by the level below a prefix."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from commitlog import Store
from rumq.admin import requests as q
from rumq.admin import rows as r
from rumq.loop.ports import Timers
from rumq.shards.admin.listings.listings import Answer, Done, MayRead

TOPICS_A_TURN = 10_000
LEVELS_MAX = 100_000  # distinct levels that are counted; further ones are only counted as left out


class TopicTreeQuery:
    def __init__(self, store: Store, timers: Timers) -> None:
        self._store, self._timers = store, timers

    def list(self, asked: q.TopicTree, may_read: MayRead, done: Done) -> None:
        """Levels in the order of their names, with the topics that may be read."""
        levels: dict[str, r.LevelRow] = {}
        names = self._names()
        prefix = f"{asked.prefix}/" if asked.prefix or asked.below_empty else ""
        left_out = 0

        def go_on() -> None:
            nonlocal left_out
            some = list(islice(names, TOPICS_A_TURN))
            for name, records in some:
                if name.startswith(prefix) and may_read(name):
                    left_out += not self._take(levels, prefix, name, records)
            if len(some) == TOPICS_A_TURN:
                self._timers.next_turn(go_on)
                return
            found = sorted(levels.values(), key=lambda row: row.level)
            kept = found[: min(asked.offset + asked.limit, q.ROWS_MAX)]
            answer: Answer = {"levels": kept, "left_out": len(found) - len(kept) + left_out}
            done(answer)

        go_on()

    def _names(self) -> Iterator[tuple[str, int]]:
        for partition in self._store.own:
            for topic_id in range(len(partition.topic_names)):
                yield (
                    partition.topic_names[topic_id].decode(errors="replace"),
                    partition.next_offsets[topic_id],
                )

    @staticmethod
    def _take(levels: dict[str, r.LevelRow], prefix: str, name: str, records: int) -> bool:
        """False: there are too many levels."""
        if not name:
            return True
        level, slash, _ = name[len(prefix) :].partition("/")
        row = levels.get(level)
        if row is None:
            if len(levels) >= LEVELS_MAX:
                return False
            row = levels[level] = r.LevelRow(
                level=level, prefix=f"{prefix}{level}", is_topic=False, topics=0, records=0
            )
        row.topics += 1
        row.records += records
        row.is_topic |= not slash
        return True
