"""One of several shards begins: it meets the others, and takes up what an earlier run left here and in their logs.

Nothing waits here: who drives the shard asks after each turn whether it has got there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumq.session.journal.replayed_state import ReplayedState
from rumq.shards.recovery.restore import adapt_to_log, apply_tags, restore

if TYPE_CHECKING:
    from rumq.shards.turn.turn import Driver


class Joining:
    def __init__(self, driver: Driver, replayed: ReplayedState) -> None:
        """replayed: of the shard's journal"""
        self._driver, self._replayed = driver, replayed
        self._has_met = False
        self._ends = {p.index: p.next_lsn for p in driver.store.partitions if not p.is_mirrored}
        self._left: set[int] = set()  # shards that have not told yet what their logs have of our sessions

    def is_over(self) -> bool:
        """Go on as far as that is possible now; True, and not asked again, once clients may come. raises: OSError"""
        driver, replayed = self._driver, self._replayed
        if not self._has_met:
            if not driver.peers.all_known:
                return False
            self._has_met = True
            adapt_to_log(driver, replayed, self._ends)
            if replayed.sessions:
                self._left = set(driver.peers.others)
                driver.peers.find_tags(replayed.tags_from, self._found)
        if self._left:
            return False
        adapt_to_log(
            driver, replayed, self._ends
        )  # an owner may have died since, and lost what it had not written
        restore(driver, replayed)
        driver.peers.begin()
        return True

    def _found(self, index: int, tags: list[tuple[str, int]]) -> None:
        apply_tags(self._replayed, tags)
        self._left.discard(index)
