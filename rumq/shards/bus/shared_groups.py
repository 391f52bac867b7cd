"""Shared subscriptions across shards: a share's home is told what members here have, and hands out to them.

The rules are the router's (`router.shared_group_rules`); this carries them. Knows no client's bytes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from router.effects import Deliver, ShareBack, ShareBegun, ShareDone, ShareLeft, ShareReady, ShareWeight
from router.shared_group import Range
from router.slots import RETAINED_CODE, partition_of, reader_of
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.record_forwarder import ShardSink

if TYPE_CHECKING:
    from rumq.shards.turn.turn import Driver


class ShareSink(ShardSink):
    """Another shard as a member: it is told which ranges are its own."""

    def forward(self, effect: Deliver) -> None:
        base = effect.chunk.base_lsn
        ranges = [(effect.partition, base + effect.first, base + effect.stop)]
        for reader in effect.readers:
            self._link.say(m.ShareParts(reader.key, ranges))

    def left(self, key: str) -> None:
        self._link.say(m.ShareLeft(key))


class SharedGroups:
    """The shares whose home is another shard."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._done: deque[tuple[int, str, list[Range]]] = (
            deque()
        )  # from which lsn of the journal on it is safe to say
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()  # likewise
        # How often a share's home was told that no member is here, and has not said that it knows. What it hands out
        # before that it takes back by itself.
        self._leaving: Counter[str] = Counter()

    def carry_out(self, effect: Any) -> None:
        if type(effect) is ShareDone:
            # What members were given is noted in the journal of sessions, whose end this is.
            self._driver.keeping.flush(self._driver.now_us)
            self._done.append((self._driver.keeping.partition.next_lsn, effect.key, effect.ranges))
        elif type(effect) is ShareBegun:
            self._driver.journal.shared(effect.key, effect.cursors)
        elif type(effect) is ShareWeight:
            said = self._say(effect.key, m.ShareWeight(effect.key, effect.topic_filter, effect.weight))
            if said and not effect.weight:
                self._leaving[effect.key] += 1
        elif type(effect) is ShareLeft:
            if isinstance(effect.shard.sink, ShareSink):
                effect.shard.sink.left(effect.key)
        elif type(effect) is ShareBack and not (effect.early and self.is_leaving(effect.key)):
            self._say(effect.key, m.ShareBack(effect.key, effect.ranges, effect.early))
        elif type(effect) is ShareReady:
            self._say(effect.key, m.ShareReady(effect.key))

    def relied_on(self, key: str, then: Callable[[], None]) -> None:
        """A client of another shard joins a share of ours: call back once the journal has how it stands."""
        keeping, writing = self._driver.keeping, self._driver.writing
        keeping.shared(key)
        keeping.flush(self._driver.now_us)
        writing.urgent(keeping.partition.index)
        self._waiting.append((keeping.partition.next_lsn, then))

    def end_turn(self) -> None:
        """Tell homes what our members have, as far as that is written down."""
        committed = self._driver.keeping.partition.committed_lsn
        while self._waiting and self._waiting[0][0] <= committed:
            self._waiting.popleft()[1]()
        while self._done and self._done[0][0] <= committed:
            _, key, ranges = self._done.popleft()
            self._say(key, m.ShareDone(key, ranges))

    def leave(self, link: BusLink, key: str, topic_filter: str) -> None:
        """Tell a share's home that the member for whom it was begun is gone."""
        link.say(m.ShareWeight(key, topic_filter, 0))
        self._leaving[key] += 1

    def is_leaving(self, key: str) -> bool:
        return bool(self._leaving) and self._leaving[key] > 0

    def left(self, key: str) -> None:
        """A share's home has heard once that no member is here."""
        self._leaving[key] -= 1
        if self._leaving[key] <= 0:
            del self._leaving[key]

    def home_lost(self, home: int) -> None:
        """It will not answer any more."""
        for key in [key for key in self._leaving if self._driver.home(key) == home]:
            del self._leaving[key]

    def _say(self, key: str, message: Any) -> bool:
        peer = self._driver.peers.others.get(self._driver.home(key))
        if peer is None or peer.link is None or not peer.has_begun:
            return False
        peer.link.say(message)
        return True

    def weights(self, home: int) -> dict[str, tuple[str, int]]:
        """The members that we have of another shard's shares."""
        return {
            key: (share.topic_filter, len(share.members))
            for key, share in self._driver.shard.sharing.shares.items()
            if not share.is_here and self._driver.home(key) == home and share.members
        }

    def handed(self, home: int) -> dict[str, list[Range]]:
        """What our members have of another shard's shares, or have had lately."""
        found: dict[str, list[Range]] = {}
        for key, share in self._driver.shard.sharing.shares.items():
            if share.is_here or self._driver.home(key) != home:
                continue
            ranges = list(share.recent)
            for subscriber, member in share.members.items():
                ranges += [*member.given, *member.before]
                session = self._driver.registry.sessions.get(subscriber.key)
                if session is not None and session.window is not None:
                    ranges += [
                        (partition_of(code), lsn, lsn + 1)
                        for _, _, code, lsn in session.window.waiting()
                        if reader_of(code) == member.reader.number and not code & RETAINED_CODE
                    ]
            found[key] = ranges
        return found
