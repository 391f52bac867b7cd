"""Follows what doors tell each other in retained messages: definitions of queues and channels, failed tries.

One connection, idle when nothing changes. It begins with what is retained now, followed without a gap by what changes
(`rumq-from` = `retained@-0s`, docs/reference/replay.md); after a loss it begins anew."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import trio

from rumq.auth.credentials.vouched import BROKERS_PASSWORD
from rumq.client import Client, ClientError, Message, Properties, connect_over
from rumq.queues.link.ports import QueuePorts
from rumq.queues.rules.errors import QueuesUnavailable
from rumq.queues.rules.names import CONFIG, TRIES
from rumq.queues.rules.registry import QueueRegistry
from rumq.queues.rules.tries import Tries

MARK = f"{CONFIG}$mark"
SEEN_SECONDS_MAX = 5.0
MISSING_SECONDS = 0.25
BACK_OFF_SECONDS, BACK_OFF_SECONDS_MAX = 0.1, 2.0


class DefinitionFollower:
    """registry, tries: as of the last message; on_change: called after each batch of them"""

    def __init__(self, ports: QueuePorts, on_change: Callable[[], None]) -> None:
        self._ports, self._on_change = ports, on_change
        self.registry, self.tries = QueueRegistry(), Tries()
        self._name = f"queues-{ports.name}"
        self._client: Client | None = None
        self._changed = trio.lowlevel.ParkingLot()
        self._is_current = False
        self._reading = trio.Lock()
        self._following = trio.CancelScope()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow until cancelled; started once everything is known."""
        delay = BACK_OFF_SECONDS
        started = False
        while True:
            try:
                async with connect_over(
                    self._ports.open_broker, client_id=f"{self._name}-{secrets.token_hex(4)}",
                    password=BROKERS_PASSWORD,
                ) as client:  # fmt: skip
                    await self._begin(client)
                    delay = BACK_OFF_SECONDS
                    if not started:
                        started = True
                        task_status.started()
                    with trio.CancelScope() as self._following:
                        while True:
                            self._take(await client.receive_batch())
                self._client, self._is_current = None, False
                continue  # as `read_again` wants it
            except ClientError as fault:
                self._client, self._is_current = None, False
                self._ports.event("queues.unavailable", why=str(fault))
            await trio.sleep(delay)
            delay = min(2 * delay, BACK_OFF_SECONDS_MAX)

    @property
    def is_current(self) -> bool:
        """Whether what is known is up to date, as far as one knows without asking."""
        return self._is_current

    async def read_again(self) -> bool:
        """Compare what is known with what is retained, and follow anew where it differs. returns: whether it did

        raises: QueuesUnavailable"""
        async with self._reading:  # one at a time, whoever asks
            try:
                async with connect_over(
                    self._ports.open_broker, client_id=f"{self._name}-{secrets.token_hex(4)}",
                    password=BROKERS_PASSWORD,
                ) as client:  # fmt: skip
                    found, _ = await read_retained(client)
            except ClientError as fault:
                raise QueuesUnavailable(f"the definitions cannot be read: {fault}") from fault
            with trio.move_on_after(MISSING_SECONDS):  # what has changed meanwhile is on its way
                while self.registry != found:
                    await self._changed.park()
                return False
            known = self.registry
            self._following.cancel()
            await self.wait(lambda registry: registry is not known)
            return True

    async def _begin(self, client: Client) -> None:
        """What was retained, up to a mark of our own. raises: ClientError"""
        self.registry, self.tries = await read_retained(client)
        self._client, self._is_current = client, True
        self._wake()

    def _take(self, messages: list[Message]) -> None:
        for each in messages:
            if not self.registry.apply(each.topic, each.payload):
                self.tries.apply(each.topic, each.payload)
        self._wake()

    def _wake(self) -> None:
        self._changed.unpark_all()
        self._on_change()

    async def publish(self, topic: str, payload: bytes, *, expiry_seconds: int = 0) -> None:
        """Retain a message for all doors. raises: QueuesUnavailable"""
        properties = Properties(message_expiry_interval=expiry_seconds) if expiry_seconds else Properties()
        client = self._client
        if client is None:
            raise QueuesUnavailable("the broker does not answer: try again")
        try:
            await client.publish(topic, payload, qos=1, retain=True, properties=properties)
        except ClientError as fault:
            raise QueuesUnavailable(f"the definition may have been written or not: {fault}") from fault

    async def wait(self, is_so: Callable[[QueueRegistry], bool]) -> None:
        """Until the registry is so. raises: QueuesUnavailable after some seconds"""
        with trio.move_on_after(SEEN_SECONDS_MAX):
            while not (self._is_current and is_so(self.registry)):
                await self._changed.park()
            return
        raise QueuesUnavailable("the definitions do not come back from the broker: try again")

    async def wait_current(self) -> None:
        """Until what is retained is known: before that, nobody can say what there is. raises: QueuesUnavailable"""
        with trio.move_on_after(SEEN_SECONDS_MAX):
            while not self._is_current:
                await self._changed.park()
            return
        raise QueuesUnavailable("the broker does not answer: try again")

    async def wait_shortly(self, is_so: Callable[[QueueRegistry], bool]) -> None:
        """Until the registry is so, or for a moment: what another process has just defined is on its way here.

        raises: QueuesUnavailable where it is not so, and may be so at the broker"""
        if is_so(self.registry):
            return
        await self.wait_current()
        with trio.move_on_after(MISSING_SECONDS):
            while not is_so(self.registry):
                await self._changed.park()

    def check_current(self) -> None:
        """raises: QueuesUnavailable while what is known may be out of date"""
        if not self._is_current:
            raise QueuesUnavailable("the broker does not answer: try again")


async def read_retained(client: Client) -> tuple[QueueRegistry, Tries]:
    """All of it, up to a mark of our own; the client gets what changes from then on. raises: ClientError"""
    registry, tries = QueueRegistry(), Tries()
    for topic_filter in (f"{CONFIG}#", f"{TRIES}#"):
        await client.subscribe(topic_filter, qos=1, from_="retained@-0s")
    nonce = secrets.token_bytes(16)
    left = {MARK, f"{TRIES}$mark"}
    for topic in left:
        await client.publish(topic, nonce, qos=1)
    while left:
        for each in await client.receive_batch():
            if each.payload == nonce:
                left.discard(each.topic)
            else:
                registry.apply(each.topic, each.payload) or tries.apply(each.topic, each.payload)
    return registry, tries
