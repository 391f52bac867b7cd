"""Values in the journal of shard 0 that this process holds, kept by the shard's leader on this node: read when they are
taken over, and written before somebody is told.

Once something was not answered, what is in the journal is not known any more: whoever goes on takes over anew. Knows
nothing of what the values mean."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec
import trio

from rumq.admin.socket.admin_client import ask_socket
from rumq.admin.socket.kept_values import (
    PAGE_BYTES_MAX,
    SOCKET_NAME,
    AnyQuestion,
    Confirm,
    KeepValues,
    KeptQuestion,
    KeptReply,
    OfBridges,
    ReadPage,
    TakeOver,
)

SECONDS_MAX = 8.0  # more than the shard takes to say that it could not
CONFIRM_SECONDS_MAX = 2.0
Ask = Callable[[KeptQuestion, float], Awaitable[KeptReply]]
Named = tuple[bytes, bytes]  # name, value


class ValuesLost(OSError):
    """Another process holds the values, or nobody knows: whoever held them does no more."""


async def take_over_values(ask: Ask) -> tuple[HeldValues, list[Named]]:
    """Hold them, and what is there. raises: ValuesLost"""
    taken = await answered(ask, TakeOver(), SECONDS_MAX)
    found: list[Named] = []
    while True:
        page = await answered(ask, ReadPage(taken.holder, len(found)), SECONDS_MAX)
        found += page.values
        if not page.left:
            return HeldValues(ask, taken.holder), found


class HeldValues:
    """turn: which holder in the cluster, counted from the first

    lost: set when another one goes on, or nobody knows"""

    def __init__(self, ask: Ask, turn: int) -> None:
        self._ask, self.turn = ask, turn
        self.lost = trio.Event()
        # Questions whether it is current: how many have begun, the last one that was answered with yes, and who waits.
        self._begun = self._confirmed = 0
        self._is_asking = False
        self._waiting = trio.lowlevel.ParkingLot()

    async def keep(self, values: Sequence[Named]) -> None:
        """Returns once they are committed; an empty value: no longer. raises: ValuesLost: perhaps some of them are, or
        will be"""
        for some in pieces(values):
            await self._do(KeepValues(self.turn, some), SECONDS_MAX)

    async def is_current(self) -> bool:
        """Whether no other process can have taken them over when this was asked.

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
        except ValuesLost:
            self.lost.set()
        finally:  # a client that leaves while it asks changes nothing, and another one asks again
            self._is_asking = False
            self._waiting.unpark_all()

    def close(self) -> None:
        self.lost.set()

    async def _do(self, asked: KeptQuestion, seconds: float) -> None:
        if self.lost.is_set():
            raise ValuesLost("this process does not hold the values any more")
        try:
            await answered(self._ask, asked, seconds)
        except BaseException:  # also where it was cancelled: it may have been written
            self.lost.set()
            raise


async def answered(ask: Ask, asked: KeptQuestion, seconds: float) -> KeptReply:
    """raises: ValuesLost"""
    try:
        reply = await ask(asked, seconds)
    except (OSError, ValueError) as fault:
        raise ValuesLost(f"the leader of shard 0 does not answer: {fault}") from None
    if reply.error:
        raise ValuesLost(reply.error)
    return reply


def ask_of_kafka(directory: str) -> Ask:
    """Asks the shard's leader on this node. directory: of the data"""
    return lambda asked, seconds: ask_at(directory, asked, seconds)


def ask_of_bridges(directory: str) -> Ask:
    return lambda asked, seconds: ask_at(directory, OfBridges(asked), seconds)


async def ask_at(directory: str, asked: AnyQuestion, seconds: float) -> KeptReply:
    """raises: OSError, ValueError"""
    line = await ask_socket(directory, SOCKET_NAME, msgspec.json.encode(asked) + b"\n", seconds)
    return msgspec.json.decode(line, type=KeptReply)


def pieces(values: Sequence[Named]) -> Iterable[list[Named]]:
    """Of as many as one question has room for; one at least."""
    some: list[Named] = []
    size = 0
    for name, value in values:
        if some and size + len(name) + len(value) > PAGE_BYTES_MAX:
            yield some
            some, size = [], 0
        some.append((name, value))
        size += len(name) + len(value)
    if some:
        yield some
