"""Watches the log of queues while somebody asks: ids of what was pushed here, depths of channels.

Nothing runs while nobody pushes or asks. Looks are on a thread; where groups stand is asked of the shards, beside the
looks: while a leader is dead its answer takes long, and ids of what others have taken must not wait for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import trio

from rumq.admin.answers import ChannelPlaces
from rumq.admin.operations import OPERATIONS
from rumq.admin.requests import Nothing
from rumq.errors import RumqError
from rumq.queues.link.ports import QueuePorts
from rumq.queues.reading.log_tail import LogTail
from rumq.queues.rules.depths import Depths, Place
from rumq.queues.rules.push_ids import PushIds

LOOK_SECONDS = 0.02  # while ids are waited for
CALM_SECONDS = 0.25  # else
PLACES_SECONDS = 0.5
IDLE_SECONDS = 2.0  # of watching after the last push or question
ID_SECONDS = 2.0  # an idle broker marks what is committed within 50 ms; a copy of a cluster may be behind, or not here


class DepthWatch:
    """depths, ids: as of the last look; fresh_at: when what it went by was asked, seconds; -inf: there was none"""

    def __init__(self, ports: QueuePorts, prefix: str, located: str, ttl_us: Callable[[], int]) -> None:
        """prefix, located: as of `LogTail`; ttl_us: of messages, at most"""
        self._ports, self._ttl_us = ports, ttl_us
        self._tail = LogTail(ports.views, prefix, located)
        self.depths, self.ids = Depths(), PushIds()
        self.fresh_at = float("-inf")
        self._asked_at = self._places_at = self._wanted_at = float("-inf")
        self._wake = trio.Event()
        self._looked = trio.lowlevel.ParkingLot()
        self._reported = ""
        self._own = Counter[str]()  # messages pushed here that were seen since the groups were asked
        self._is_asking, self._retry_at = False, float("-inf")

    async def run(self) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                is_over = trio.current_time() - self._asked_at > IDLE_SECONDS
                if is_over and not self.ids.waiting and not self._is_asking:
                    self._wake = trio.Event()
                    await self._wake.wait()
                    self.depths.unseen.clear()  # of connections that were lost it may be wrong
                    self._own.clear()
                began = trio.current_time()
                is_due = began - self._places_at >= PLACES_SECONDS or self._places_at < self._wanted_at
                may_ask = not self._is_asking and began >= self._retry_at
                if await self._look() and is_due and may_ask:
                    self._is_asking = True
                    nursery.start_soon(self._ask_places, began)
                await trio.sleep(LOOK_SECONDS if self.ids.waiting else CALM_SECONDS)

    def ask(self) -> None:
        """Somebody pushes, or asks for depths: look for a while."""
        self._asked_at = trio.current_time()
        self._wake.set()

    async def wait_fresh(self, age_seconds: float) -> None:
        """Until there is a look no older than that. Returns also where the log cannot be read"""
        until = trio.current_time() - age_seconds
        self._wanted_at = max(self._wanted_at, until)
        with trio.move_on_after(ID_SECONDS):
            while self.fresh_at < until:
                self.ask()
                await self._looked.park()

    async def _look(self) -> bool:
        """Whether the log could be read."""
        since_us = self._ports.now_us() - self._ttl_us()
        look = None
        try:
            look = await trio.to_thread.run_sync(self._tail.look, since_us)
        except (OSError, ValueError) as fault:
            self._report(str(fault))
        else:
            self.depths.see(look.seen, look.ends)
            self.ids.see(look.numbers)
            self._own.update(look.own)
        self.ids.give_up(trio.current_time())
        self._looked.unpark_all()
        return look is not None

    async def _ask_places(self, began: float) -> None:
        """began: of the look before it"""
        own, self._own = self._own, Counter[str]()
        try:
            answer = await self._ports.ask(OPERATIONS["channel_places"], Nothing())
            assert isinstance(answer, ChannelPlaces)
            self.depths.put_places({each.channel: Place(each.lsns, each.returned) for each in answer.places})
        except (OSError, RumqError, ValueError) as fault:
            self._own.update(own)
            self._retry_at = trio.current_time() + CALM_SECONDS
            self._report(str(fault))
        else:
            # Groups were asked after these were seen: what they have of them is known.
            self.depths.unseen.subtract(own)
            self._places_at = self.fresh_at = began
            self._report("")
        finally:
            self._is_asking = False
        self._looked.unpark_all()

    def _report(self, why: str) -> None:
        if why and why != self._reported:
            self._ports.event("queues.depth_unknown", why=why[:200])
        self._reported = why
