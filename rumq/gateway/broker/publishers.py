"""MQTT connections of the gateway, one for each user that tokens publish as: rules and quotas are those of MQTT.

They go to a Unix socket in the data directory, where the broker takes the user name without a password. Their sessions
and their shares of quotas are the gateway's own: no client of these users takes them away (`vouched`)."""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import trio

from rumq.auth.credentials.vouched import OWN_PASSWORD
from rumq.client.client import Client
from rumq.client.connector import connect_over
from rumq.client.session.messages import Outgoing
from rumq.errors import ClientError
from rumq.gateway.broker.broker_socket import open_broker
from rumq.gateway.records.positions import SEARCH_SECONDS_MAX, PositionClaims
from rumq.mqtt.reasons import Reason

CONNECTIONS_MAX = 64
CONNECT_SECONDS_MAX = 5.0


class PublishConnection:
    """One connection. scope: ends it; failure: why it has ended

    claims, search_seconds: of the search for its messages in the log, and how long the next one may take"""

    def __init__(self) -> None:
        self.client: Client | None = None
        self.scope = trio.CancelScope()
        self.failure: ClientError | None = None
        self.ready = trio.Event()
        self.client_id = ""
        self.claims = PositionClaims()
        self.search_seconds = SEARCH_SECONDS_MAX


class PublishConnections:
    """node: of a cluster, "" for a broker alone; published: messages that were acknowledged, so far"""

    def __init__(self, path: str, node: str = "") -> None:
        self._path = path
        self._name = "-".join(filter(None, ("rumq-gateway", node, str(os.getpid()))))
        self._users: OrderedDict[tuple[str, bool], PublishConnection] = OrderedDict()
        self._nursery: trio.Nursery | None = None
        self.published = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the connections until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            await trio.sleep_forever()

    async def publish(
        self, user: str, messages: Sequence[Outgoing], *, is_located: bool = False
    ) -> tuple[dict[int, tuple[Reason, str]], PublishConnection]:
        """Publish in order and wait for the acknowledgements. raises: ClientError

        is_located: on a connection of its own, all of whose messages are then looked for in the log
        returns: those that were refused, and who has published the others"""
        publisher = self._publisher((user, is_located))
        await publisher.ready.wait()
        if publisher.client is None:
            assert publisher.failure is not None
            raise publisher.failure
        try:
            refused = await publisher.client.publish_each(messages)
        except ClientError:
            self._forget((user, is_located), publisher)  # the next request connects anew
            raise
        self.published += len(messages) - len(refused)
        return refused, publisher

    def _publisher(self, user: tuple[str, bool]) -> PublishConnection:
        known = self._users.get(user)
        if known is not None:
            self._users.move_to_end(user)
            return known
        assert self._nursery is not None
        if len(self._users) >= CONNECTIONS_MAX:
            self._users.popitem(last=False)[1].scope.cancel()
        made = self._users[user] = PublishConnection()
        self._nursery.start_soon(self._hold, user, made)
        return made

    def _forget(self, user: tuple[str, bool], publisher: PublishConnection) -> None:
        if self._users.get(user) is publisher:
            del self._users[user]
        publisher.scope.cancel()

    async def _hold(self, user: tuple[str, bool], publisher: PublishConnection) -> None:
        """Keep one connection until it fails or is cancelled."""
        name = f"{self._name}-{secrets.token_hex(8)}"  # unique in the cluster, and nothing that a client could foresee
        try:
            with publisher.scope:
                async with connect_over(
                    partial(open_broker, self._path), client_id=name, username=user[0] or None,
                    password=OWN_PASSWORD, connect_seconds_max=CONNECT_SECONDS_MAX,
                ) as client:  # fmt: skip
                    publisher.client, publisher.client_id = client, name
                    publisher.ready.set()
                    await client.receive_batch()  # nothing comes: it ends with the connection
        except ClientError as fault:
            publisher.failure = fault
        finally:
            if publisher.client is None and publisher.failure is None:
                publisher.failure = ClientError("the connection was closed")
            self._forget(user, publisher)
            publisher.ready.set()
