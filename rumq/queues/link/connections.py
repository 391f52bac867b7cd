"""Connections on which a process publishes to queues: one for each user, whose rules and quotas hold, one for itself.

As the gateway's own (`rumq.gateway.broker.publishers`); the least used one ends where there are too many."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable

import trio

from rumq.auth.credentials.vouched import BROKERS_PASSWORD, OWN_PASSWORD
from rumq.client import Outgoing
from rumq.mqtt.reasons import Reason
from rumq.queues.kernels.push_frames import PushFrames
from rumq.queues.link.ports import QueuePorts
from rumq.queues.link.push_batches import PushBatch
from rumq.queues.link.push_link import FrameBuilder, PushLink
from rumq.queues.rules.errors import BadQueueRequest, QueueError, QueueFull, QueueNotAllowed, QueuesUnavailable

Refusals = dict[int, tuple[Reason, str]]
Key = tuple[str | None, bool]  # user, None for nobody; whether its messages are looked for
CONNECTIONS_MAX = 64


def nothing() -> None:
    """For who waits for nothing."""


class QueueConnection:
    """users: calls that use it; scope: ends it"""

    def __init__(self, link: PushLink) -> None:
        self.link = link
        self.scope = trio.CancelScope()
        self.users = 0


class Connections:
    """prefix: of the client ids of all; located_prefix: of those whose messages are looked for

    on_end: called with the client id of a connection that has ended"""

    def __init__(self, ports: QueuePorts) -> None:
        self._ports = ports
        self._open: OrderedDict[Key, QueueConnection] = OrderedDict()
        self._nursery: trio.Nursery | None = None
        self.on_end: Callable[[str], None] = lambda client_id: None
        self.located_prefix = f"queues-{ports.name}-ids-"  # of client ids
        self.prefix = f"queues-{ports.name}-"

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the connections until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            await trio.sleep_forever()

    async def link(self, user: str | None, *, is_located: bool = False) -> PushLink:
        """An open connection of a user, "" for anonymous; None: of this process itself. raises: QueuesUnavailable

        is_located: one whose every message is looked for in the log"""
        connection = self._connection((user, is_located))
        await connection.link.ready.wait()
        if connection.link.failure is not None:
            raise QueuesUnavailable(f"the broker does not answer: {connection.link.failure}")
        return connection.link

    async def publish(self, user: str | None, messages: Iterable[Outgoing]) -> Refusals:
        """Publish in order, and wait for the acknowledgements. raises: QueuesUnavailable

        returns: those that were refused, by number"""
        frames = PushFrames()
        builder = FrameBuilder(frames)
        for each in messages:
            builder.add(each)
        batch = PushBatch(frames)
        await self.put(user, batch)
        return batch.refused

    async def put(
        self, user: str | None, batch: PushBatch, *, is_located: bool = False, on_put: Callable[[], None] = nothing
    ) -> None:
        """Publish a batch, and wait for the acknowledgements. raises: QueuesUnavailable

        on_put: called once it has its place before later ones"""
        connection = self._connection((user, is_located))
        connection.users += 1
        try:
            await self.link(user, is_located=is_located)
            connection.link.put(batch)
            on_put()
            await batch.done.wait()
        finally:
            connection.users -= 1
        if batch.fault is not None:
            raise QueuesUnavailable(f"{batch.fault}; what was sent may have been taken or not")

    def _connection(self, key: Key) -> QueueConnection:
        known = self._open.get(key)
        if known is not None and known.link.failure is None:
            self._open.move_to_end(key)
            return known
        assert self._nursery is not None, "`run` is not running"
        if known is None and len(self._open) >= CONNECTIONS_MAX:
            idle = next((name for name, each in self._open.items() if not each.users), None)
            name = next(iter(self._open)) if idle is None else idle
            self._open.pop(name).scope.cancel()
        user, is_located = key
        password = BROKERS_PASSWORD if user is None else OWN_PASSWORD
        prefix = self.located_prefix if is_located else self.prefix
        link = PushLink(f"{prefix}{secrets.token_hex(8)}", user or None, password)
        made = self._open[key] = QueueConnection(link)
        self._nursery.start_soon(self._hold, key, made)
        return made

    async def _hold(self, key: Key, connection: QueueConnection) -> None:
        """Until it fails or is cancelled."""
        with connection.scope:
            await connection.link.run(self._ports.open_broker)
        if self._open.get(key) is connection:
            del self._open[key]
        self.on_end(connection.link.client_id)


def refusal_of(reason: Reason, why: str) -> QueueError:
    """What the broker refused, as an error of queues."""
    said = why or reason.text
    if reason is Reason.NOT_AUTHORIZED:
        return QueueNotAllowed(f"the rules do not let this user push here: {said}")
    if reason in (Reason.QUOTA_EXCEEDED, Reason.MESSAGE_RATE_TOO_HIGH):
        return QueueFull(f"the broker takes no more for now: {said}")
    if reason in (Reason.PACKET_TOO_LARGE, Reason.TOPIC_NAME_INVALID, Reason.PAYLOAD_FORMAT_INVALID):
        return BadQueueRequest(f"the broker refuses it: {said}")
    return QueuesUnavailable(f"the broker refuses it for now: {said}")
