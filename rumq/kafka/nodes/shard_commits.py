"""Committed offsets in the journal of shard 0, kept by its leader on this node: read when it is taken over, and written
before a commit is answered.

Once something was not answered, what is in the journal is not known any more: whoever goes on takes over anew."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec
import trio

from rumq.admin.socket.admin_client import ask_socket
from rumq.admin.socket.kept_values import (
    PAGE_BYTES_MAX,
    SOCKET_NAME,
    Confirm,
    KeepValues,
    KeptQuestion,
    KeptReply,
    ReadPage,
    TakeOver,
)
from rumq.kafka.groups.commit_entries import Commit, Entry
from rumq.kafka.groups.commit_store import CommitsLost

SECONDS_MAX = 8.0  # more than the shard takes to say that it could not
CONFIRM_SECONDS_MAX = 2.0
Ask = Callable[[KeptQuestion, float], Awaitable[KeptReply]]


async def take_over(ask: Ask) -> ShardCommits:
    """raises: CommitsLost"""
    taken = await answered(ask, TakeOver())
    values: list[tuple[bytes, bytes]] = []
    while True:
        page = await answered(ask, ReadPage(taken.holder, len(values)))
        values += page.values
        if not page.left:
            break
    try:
        entries = [msgspec.msgpack.decode(value, type=Entry) for _, value in values]
    except msgspec.DecodeError as fault:
        raise CommitsLost(f"a commit in the journal cannot be read: {fault}") from None
    return ShardCommits(ask, taken, entries)


class ShardCommits:
    """A `CommitStore`. turn: which one in the cluster, counted from the first

    lost: set when another one goes on, or nobody knows"""

    damage = ""

    def __init__(self, ask: Ask, taken: KeptReply, entries: Sequence[Entry]) -> None:
        """entries: that were there"""
        self._ask, self.turn = ask, taken.holder
        self._entries = list(entries)
        self.lost = trio.Event()
        # Questions whether it is current: how many have begun, the last one that was answered with yes, and who waits.
        self._begun = self._confirmed = 0
        self._is_asking = False
        self._waiting = trio.lowlevel.ParkingLot()

    def read(self) -> list[Entry]:
        entries, self._entries = self._entries, []
        return entries

    async def keep(self, entries: Sequence[Entry], all_of: Callable[[], Iterable[Commit]]) -> None:
        """Returns once they are committed. raises: CommitsLost: perhaps some of them are, or will be"""
        for some in pieces([kept_of(each) for each in entries]):
            await self._do(KeepValues(self.turn, some), SECONDS_MAX)

    async def keep_missing(self, commits: Sequence[Commit]) -> None:
        """Add those of places of which nothing was there. Before `read`. raises: CommitsLost"""
        known = {kept_of(each)[0] for each in self._entries}
        missing = [each for each in commits if kept_of(each)[0] not in known]
        await self.keep(missing, tuple)
        self._entries += missing

    async def is_current(self) -> bool:
        """Whether no other node can have taken over when this was asked.

        Those who ask while a question is on its way share the next one: the socket takes few at once."""
        wanted = self._begun + 1
        while self._confirmed < wanted:
            if self.lost.is_set():
                return False
            if self._is_asking:
                await self._waiting.park()
            else:
                await self._confirm()
        return True

    async def _confirm(self) -> None:
        self._begun += 1
        number, self._is_asking = self._begun, True
        try:
            await answered(self._ask, Confirm(self.turn), CONFIRM_SECONDS_MAX)
            self._confirmed = number
        except CommitsLost:
            self.lost.set()
        finally:  # a client that leaves while it asks changes nothing, and another one asks again
            self._is_asking = False
            self._waiting.unpark_all()

    def close(self) -> None:
        self.lost.set()

    async def _do(self, asked: KeepValues, seconds: float) -> None:
        if self.lost.is_set():
            raise CommitsLost("this node does not coordinate groups any more")
        try:
            await answered(self._ask, asked, seconds)
        except BaseException:  # also where it was cancelled: it may have been written
            self.lost.set()
            raise


async def answered(ask: Ask, asked: KeptQuestion, seconds: float = SECONDS_MAX) -> KeptReply:
    """raises: CommitsLost"""
    try:
        reply = await ask(asked, seconds)
    except (OSError, ValueError) as fault:
        raise CommitsLost(f"the leader of shard 0 does not answer: {fault}") from None
    if reply.error:
        raise CommitsLost(reply.error)
    return reply


def ask_at(directory: str) -> Ask:
    """Asks the shard's leader on this node. directory: of the data"""

    async def ask(asked: KeptQuestion, seconds: float) -> KeptReply:
        line = await ask_socket(directory, SOCKET_NAME, msgspec.json.encode(asked) + b"\n", seconds)
        return msgspec.json.decode(line, type=KeptReply)

    return ask


def kept_of(entry: Entry) -> tuple[bytes, bytes]:
    """(name, value): of a place the last one counts; an empty value is kept no longer."""
    name = msgspec.msgpack.encode((entry.user, entry.group, entry.topic, entry.partition))
    return name, msgspec.msgpack.encode(entry) if isinstance(entry, Commit) else b""


def pieces(values: Sequence[tuple[bytes, bytes]]) -> Iterable[list[tuple[bytes, bytes]]]:
    """Of as many as one question has room for; one at least."""
    some: list[tuple[bytes, bytes]] = []
    size = 0
    for name, value in values:
        if some and size + len(name) + len(value) > PAGE_BYTES_MAX:
            yield some
            some, size = [], 0
        some.append((name, value))
        size += len(name) + len(value)
    if some:
        yield some
