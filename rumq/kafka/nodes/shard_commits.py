"""Committed offsets in the journal of shard 0: read when they are taken over, and written before a commit is answered.

`rumq.admin.socket.held_values` asks for them; here is how they are named and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import trio

from rumq.admin.socket.held_values import Ask, HeldValues, Named, ValuesLost, take_over_values
from rumq.kafka.groups.commit_entries import Commit, Entry
from rumq.kafka.groups.commit_store import CommitsLost


async def take_over(ask: Ask) -> ShardCommits:
    """raises: CommitsLost"""
    try:
        held, values = await take_over_values(ask)
        entries = [msgspec.msgpack.decode(value, type=Entry) for _, value in values]
    except ValuesLost as fault:
        raise CommitsLost(str(fault)) from None
    except msgspec.DecodeError as fault:
        raise CommitsLost(f"a commit in the journal cannot be read: {fault}") from None
    return ShardCommits(held, entries)


class ShardCommits:
    """A `CommitStore`. turn: which one in the cluster, counted from the first

    lost: set when another one goes on, or nobody knows"""

    damage = ""

    def __init__(self, held: HeldValues, entries: Sequence[Entry]) -> None:
        """entries: that were there"""
        self._held, self._entries = held, list(entries)

    @property
    def turn(self) -> int:
        return self._held.turn

    @property
    def lost(self) -> trio.Event:
        return self._held.lost

    def read(self) -> list[Entry]:
        entries, self._entries = self._entries, []
        return entries

    async def keep(self, entries: Sequence[Entry], all_of: Callable[[], Iterable[Commit]]) -> None:
        """Returns once they are committed. raises: CommitsLost: perhaps some of them are, or will be"""
        try:
            await self._held.keep([kept_of(each) for each in entries])
        except ValuesLost as fault:
            raise CommitsLost(str(fault)) from None

    async def keep_missing(self, commits: Sequence[Commit]) -> None:
        """Add those of places of which nothing was there. Before `read`. raises: CommitsLost"""
        known = {kept_of(each)[0] for each in self._entries}
        missing = [each for each in commits if kept_of(each)[0] not in known]
        await self.keep(missing, tuple)
        self._entries += missing

    async def is_current(self) -> bool:
        """Whether no other node can have taken over when this was asked."""
        return await self._held.is_current()

    def close(self) -> None:
        self._held.close()


def kept_of(entry: Entry) -> Named:
    """Of a place the last one counts; an empty value is kept no longer."""
    name = msgspec.msgpack.encode((entry.user, entry.group, entry.topic, entry.partition))
    return name, msgspec.msgpack.encode(entry) if isinstance(entry, Commit) else b""
