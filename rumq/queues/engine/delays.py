"""Delayed delivery: messages wait in topics of their own, `$queues/$delayed/<label>/<topic>`, until they are due.

Every process is a member of one shared group over all of them, with a session that lasts some seconds: it holds what it
was given, publishes each when it is due, and then acknowledges it. What a process holds when it ends goes to another. A
crash between the two publishes a message twice, with two ids. docs/reference/queues.md, "Delay"."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import trio

from rumq.auth.credentials.vouched import BROKERS_PASSWORD
from rumq.client import ClientError, Outgoing
from rumq.mqtt.packets import Publish
from rumq.mqtt.properties import Properties
from rumq.queues.link.anchors import Anchors
from rumq.queues.link.connections import Connections
from rumq.queues.link.member_link import MemberLink, MemberLogin
from rumq.queues.link.ports import QueuePorts
from rumq.queues.rules.errors import QueueError, QueueFull
from rumq.queues.rules.names import DELAYED, split_topic
from rumq.queues.rules.packets import DUE, EXPIRY, KEY, OWN, TIME, due_topic, micros, own_properties
from rumq.queues.rules.registry import QueueRegistry

SHARE = f"$share/$delayed/{DELAYED}#"
SESSION_SECONDS = 10
BATCH_MAX = 1000
WINDOW_MAX = 32_000  # messages: the broker's in-flight window is no wider
BACK_OFF_SECONDS, BACK_OFF_SECONDS_MAX = 0.1, 2.0
AGAIN_SECONDS = 1.0  # after the broker refused what was due


class Delays:
    """dropped: messages whose queue was deleted meanwhile"""

    def __init__(
        self, ports: QueuePorts, anchors: Anchors, connections: Connections, registry: Callable[[], QueueRegistry]
    ) -> None:
        self._ports, self._anchors, self._connections, self._registry = ports, anchors, connections, registry
        self._login = MemberLogin(f"$delays/{ports.name}", BROKERS_PASSWORD, SESSION_SECONDS)
        self._held: dict[int, Publish] = {}  # by packet id
        self._due: list[tuple[int, int]] = []  # µs since 1970, packet id
        self._changed = trio.Event()
        self.dropped = 0

    def __len__(self) -> int:
        """Messages that wait here."""
        return len(self._held)

    def check_room(self, wanted: int) -> None:
        """raises: QueueFull"""
        most = self._ports.bounds.delayed_max
        if len(self._held) + wanted > most:
            raise QueueFull(
                f"{len(self._held)} messages wait here for their time, of at most {most} (queues.delayed_max): push "
                "later, or without a delay", len(self._held), most,
            )  # fmt: skip

    async def run(self) -> None:
        """Until cancelled."""
        delay = BACK_OFF_SECONDS
        while True:
            began = trio.current_time()
            try:
                await self._serve()
            except* (ClientError, QueueError) as faults:
                self._ports.event("queues.delays_wait", why=str(faults.exceptions[0])[:200])
            if trio.current_time() - began > BACK_OFF_SECONDS_MAX:
                delay = BACK_OFF_SECONDS
            await trio.sleep(delay)
            delay = min(2 * delay, BACK_OFF_SECONDS_MAX)

    async def _serve(self) -> None:
        await self._anchors.hold([SHARE])
        # More than are taken from callers: other doors take some too, and the group deals them out evenly.
        window = min(WINDOW_MAX, 2 * self._ports.bounds.delayed_max)
        link = await MemberLink.open(self._ports.open_broker, self._login, window)
        try:
            if not link.is_resumed:
                self._held.clear()
                self._due.clear()
            await link.subscribe([SHARE], tells_place=True)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(link.keep_alive)
                nursery.start_soon(self._publish_due, link)
                while True:
                    for packet in (await link.receive())[1]:
                        self._take(packet)
                    self._changed.set()
        finally:
            await link.close()

    def _take(self, packet: Publish) -> None:
        assert packet.packet_id is not None
        if packet.packet_id not in self._held:
            due = own_properties(packet).get(DUE, "0")
            heapq.heappush(self._due, (int(due) if due.isdecimal() else 0, packet.packet_id))
        self._held[packet.packet_id] = packet

    async def _publish_due(self, link: MemberLink) -> None:
        while True:
            self._changed = trio.Event()
            now_us = self._ports.now_us()
            ids: list[int] = []
            while self._due and self._due[0][0] <= now_us and len(ids) < BATCH_MAX:
                ids.append(heapq.heappop(self._due)[1])
            if ids:
                await self._publish(link, ids)
                continue
            wait = (self._due[0][0] - now_us) / 1e6 if self._due else float("inf")
            with trio.move_on_after(wait):
                await self._changed.wait()

    async def _publish(self, link: MemberLink, ids: list[int]) -> None:
        """raises: ClientError, QueueError: they come again, or stay due"""
        done: list[int] = []
        messages: list[Outgoing] = []
        sent: list[int] = []
        for packet_id in ids:
            message = self._outgoing(self._held[packet_id])
            if message is None:
                self.dropped += 1
                done.append(packet_id)
            else:
                messages.append(message)
                sent.append(packet_id)
        try:
            refused = await self._connections.publish(None, messages)
        except BaseException:
            for packet_id in ids:
                heapq.heappush(self._due, (0, packet_id))
            raise
        done += [packet_id for number, packet_id in enumerate(sent) if number not in refused]
        for number in refused:
            again_us = self._ports.now_us() + round(AGAIN_SECONDS * 1e6)
            heapq.heappush(self._due, (again_us, sent[number]))
        for packet_id in done:
            del self._held[packet_id]
        await link.acknowledge(done)

    def _outgoing(self, packet: Publish) -> Outgoing | None:
        """None: its queue is not there any more, or is another."""
        topic, own = due_topic(packet.topic), own_properties(packet)
        queue = self._registry().queues.get(split_topic(topic)[0])
        if queue is None or queue.created_us > micros(own.get(TIME, "")) > 0:
            return None
        expiry = own.get(EXPIRY, "")
        properties = Properties(
            message_expiry_interval=int(expiry) if expiry.isdecimal() else queue.ttl_seconds,
        )
        kept = [
            each
            for each in packet.properties.get("user_properties", ())
            if not each[0].startswith(OWN) or each[0] == KEY
        ]
        if kept:
            properties["user_properties"] = kept
        if "content_type" in packet.properties:
            properties["content_type"] = packet.properties["content_type"]
        return Outgoing(topic, packet.payload, 1, False, properties)
