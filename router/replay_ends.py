"""Replays that are to be told where the log ended when they began: the end is told behind the records before it.

docs/reference/replay.md, "The end". Most replays do not ask, and cost nothing here."""
# compiled: warm

from __future__ import annotations

from router.delivery import Delivery
from router.effects import CatchUpPaused, ReplayEnded
from router.matching.feed import Feed
from router.readers.reader import Reader


class ReplayEnds:
    """Readers of replays that have not reached their ends."""

    def __init__(self, feeds: list[Feed], delivery: Delivery) -> None:
        self._feeds, self._delivery = feeds, delivery
        self._ends: dict[Reader, list[int] | None] = {}  # by partition; None: the start is still searched
        self._passed: set[Reader] = set()  # at the end of an earlier step, if nothing of it is refused

    def are_expected(self) -> bool:
        """Whether somebody is to be told."""
        return bool(self._ends)

    def expect(self, reader: Reader) -> None:
        """This reader is to be told."""
        self._ends[reader] = None

    def tell(self) -> None:
        """At the end of a step: tell those that were past their ends in the step before, too. What their sinks refused
        of that step has come back by now, and has taken them behind their ends again."""
        for reader in list(self._ends):
            if reader.closed:
                del self._ends[reader]
                self._passed.discard(reader)
            elif reader.sink is None or reader.start is not None or not self._has_passed(reader):
                self._passed.discard(reader)
            elif reader not in self._passed or reader.refused:
                self._passed.add(reader)
                self._delivery.effects.append(CatchUpPaused(reader, if_taken=True))
            else:
                del self._ends[reader]
                self._passed.discard(reader)
                self._delivery.effects.append(ReplayEnded(reader))

    def _has_passed(self, reader: Reader) -> bool:
        ends = self._ends[reader]
        if ends is None:
            ends = self._ends[reader] = [feed.mark(True) for feed in self._feeds]
        return all(
            reader in reader.group.live[feed.index] or reader.cursors[feed.index] >= ends[feed.index]
            for feed in self._feeds
        )
