"""Connections on which a process publishes to queues: one for each user, whose rules and quotas hold, one for itself.

As the gateway's own (`rumq.gateway.broker.publishers`); the least used one ends where there are too many."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence

import trio

from rumq.auth.credentials.vouched import BROKERS_PASSWORD, OWN_PASSWORD
from rumq.client import Client, ClientError, ConnectionLost, Outgoing, connect_over
from rumq.mqtt.frames import PACKET_BYTES_MAX
from rumq.mqtt.reasons import Reason
from rumq.queues.link.ports import Ports
from rumq.queues.rules.errors import (
    BadQueueRequest,
    QueueError,
    QueueFull,
    QueueNotAllowed,
    QueuesUnavailable,
)

CONNECTIONS_MAX = 64
CONNECT_SECONDS_MAX = 5.0

Refusals = dict[int, tuple[Reason, str]]


class Connection:
    """client: None until it is open, or where it failed; failure: why; scope: ends it; name: its client id"""

    def __init__(self, name: str) -> None:
        self.name = name
        self.client: Client | None = None
        self.failure: ClientError | None = None
        self.scope = trio.CancelScope()
        self.ready = trio.Event()
        self.users = 0


class Connections:
    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._open: OrderedDict[str | None, Connection] = OrderedDict()  # by user; None: for nobody
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the connections until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            await trio.sleep_forever()

    async def packet_bytes_max(self, user: str | None) -> int:
        """The largest packet that the broker takes. raises: QueuesUnavailable"""
        connection = self._connection(user)
        await connection.ready.wait()
        if connection.client is None:
            raise QueuesUnavailable(f"the broker does not answer: {connection.failure}")
        return connection.client.connack.properties.get("maximum_packet_size", PACKET_BYTES_MAX)

    async def publish(self, user: str | None, messages: Sequence[Outgoing]) -> tuple[Refusals, Connection]:
        """Publish in order, and wait for the acknowledgements. user: "" for anonymous, None for this process itself

        returns: those that were refused, by number, and who published. raises: QueuesUnavailable"""
        connection = self._connection(user)
        connection.users += 1
        try:
            await connection.ready.wait()
            if connection.client is None:
                raise QueuesUnavailable(f"the broker does not answer: {connection.failure}")
            return await connection.client.publish_each(messages), connection
        except ClientError as fault:
            self._forget(user, connection)
            raise QueuesUnavailable(f"{fault}; what was sent may have been taken or not") from fault
        finally:
            connection.users -= 1

    def _connection(self, user: str | None) -> Connection:
        known = self._open.get(user)
        if known is not None:
            self._open.move_to_end(user)
            return known
        assert self._nursery is not None, "`run` is not running"
        if len(self._open) >= CONNECTIONS_MAX:
            idle = next((name for name, each in self._open.items() if not each.users), None)
            name = next(iter(self._open)) if idle is None else idle
            self._open.pop(name).scope.cancel()
        made = self._open[user] = Connection(f"queues-{self._ports.name}-{secrets.token_hex(8)}")
        self._nursery.start_soon(self._hold, user, made)
        return made

    def _forget(self, user: str | None, connection: Connection) -> None:
        if self._open.get(user) is connection:
            del self._open[user]
        connection.scope.cancel()

    async def _hold(self, user: str | None, connection: Connection) -> None:
        """Until it fails or is cancelled."""
        try:
            with connection.scope:
                async with connect_over(
                    self._ports.open_broker, client_id=connection.name, username=user or None,
                    password=BROKERS_PASSWORD if user is None else OWN_PASSWORD,
                    connect_seconds_max=CONNECT_SECONDS_MAX,
                ) as client:  # fmt: skip
                    connection.client = client
                    connection.ready.set()
                    await client.receive_batch()  # nothing comes: it ends with the connection
        except ClientError as fault:
            connection.failure = fault
        finally:
            connection.client = None
            connection.failure = connection.failure or ConnectionLost("the connection was closed")
            self._forget(user, connection)
            connection.ready.set()


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
