"""Anchors: what keeps the group of a channel alive while nobody consumes. docs/reference/queues.md, "On the disk"

A group lives as long as a durable session takes part in it. An anchor is a session of the broker's own that never ends,
whose client is never there: it connects to join groups or leave them. While it does, the broker gives it no message
(`rumq.session.handshake`). There are `ANCHORS` of them, each with a part of all channels, for every process alike."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence

import trio

from rumq.auth.credentials.vouched import BROKERS_PASSWORD
from rumq.client import ClientError
from rumq.queues.link.member_link import MemberLink, MemberLogin
from rumq.queues.link.ports import QueuePorts
from rumq.queues.rules.errors import QueuesUnavailable

PREFIX = "$anchor/"  # of client ids; `rumq.session.handshake.connect` knows it
ANCHORS = 64
NEVER = 0xFFFFFFFF
FILTERS_MAX = 100  # of one SUBSCRIBE
ATTEMPTS = 20
BACK_OFF_SECONDS = 0.1

Change = Callable[[MemberLink, Sequence[str]], Awaitable[None]]


async def join(link: MemberLink, shares: Sequence[str]) -> None:
    await link.subscribe(shares, tells_place=False)


async def leave(link: MemberLink, shares: Sequence[str]) -> None:
    await link.unsubscribe(shares)


class Anchors:
    def __init__(self, ports: QueuePorts) -> None:
        self._ports = ports
        self._busy = defaultdict[int, trio.Lock](trio.Lock)

    async def hold(self, shares: Iterable[str]) -> None:
        """Keep these groups (`$share/...`) alive; one that is there stays as it is. raises: QueuesUnavailable"""
        await self._do(shares, join)

    async def let_go(self, shares: Iterable[str]) -> None:
        """Let these end, unless somebody else is in them. raises: QueuesUnavailable"""
        await self._do(shares, leave)

    async def _do(self, shares: Iterable[str], change: Change) -> None:
        by_anchor: dict[int, list[str]] = defaultdict(list)
        for share in shares:
            by_anchor[anchor_of(share)].append(share)
        for anchor, those in by_anchor.items():
            async with self._busy[anchor]:
                await self._change(anchor, those, change)

    async def _change(self, anchor: int, shares: Sequence[str], change: Change) -> None:
        """Other processes use the anchor too: who connects takes it over, and the other tries again."""
        login = MemberLogin(f"{PREFIX}{anchor}", BROKERS_PASSWORD, NEVER)
        fault: ClientError | None = None
        for attempt in range(ATTEMPTS):
            try:
                link = await MemberLink.open(self._ports.open_broker, login, 1)
                try:
                    for at in range(0, len(shares), FILTERS_MAX):
                        await change(link, shares[at : at + FILTERS_MAX])
                finally:
                    await link.leave(ends_session=False)
                return
            except ClientError as again:
                fault = again
            await trio.sleep(BACK_OFF_SECONDS * (1 + (anchor + attempt) % 5))
        raise QueuesUnavailable(f"the channel cannot be anchored: {fault}") from fault


def anchor_of(share: str) -> int:
    """The same in every process and version."""
    return zlib.crc32(share.encode()) % ANCHORS
