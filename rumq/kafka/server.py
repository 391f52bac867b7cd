"""The server: accepts connections within its shares, does TLS handshakes, and ends each connection alone.

docs/reference/kafka.md"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial

import trio

from rumq.auth.identity import Certificate
from rumq.auth.quota_holder import holder_of
from rumq.kafka.access.shares import KafkaShares
from rumq.kafka.answers.connected_client import AdvertisedAddress, KafkaClient, KafkaDoor
from rumq.kafka.connection import ConnectionBounds, KafkaConnection, Parking
from rumq.kafka.parked.parked_connections import ParkedConnections
from rumq.kafka.protocol.errors import KafkaFault
from rumq.net.certificate import peer_certificate

HANDSHAKE_SECONDS_MAX = 10.0


class KafkaServer:
    """tls: the context for new connections, asked for each; None: without TLS"""

    def __init__(
        self, door: KafkaDoor, bounds: ConnectionBounds, connections_max: int, tls: Callable[[], ssl.SSLContext | None],
    ) -> None:  # fmt: skip
        self.door, self._bounds, self._tls = door, bounds, tls
        self.connections = KafkaShares(connections_max)
        self.parked = ParkedConnections(door.log)
        self._open: dict[trio.CancelScope, None] = {}

    def end_all(self) -> None:
        """Users or rules have changed: clients come again, and log in anew."""
        for scope in list(self._open):
            scope.cancel()

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection, until it ends; its faults are nobody else's."""
        try:
            peer, port = stream.socket.getpeername()[:2]
        except OSError:
            await trio.aclose_forcefully(stream)
            return
        network = holder_of(peer)
        if not self.connections.take(1, (network,)):
            self.door.figures.refused_connections += 1
            await trio.aclose_forcefully(stream)
            return
        scope = trio.CancelScope()
        self._open[scope] = None
        try:
            with scope:
                await self._serve(stream, plain_address(peer), network)
        except* KafkaFault as faults:
            why = "; ".join(str(each) for each in flat(faults))
            self.door.event("kafka.ended", peer=f"{peer}:{port}", why=why)
        except* (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError):
            pass  # it left
        except* OSError as faults:
            why = "; ".join(each.strerror or str(each) for each in flat(faults) if isinstance(each, OSError))
            self.door.event("kafka.failed", peer=f"{peer}:{port}", why=f"the log cannot be read: {why}")
        except* Exception as faults:  # ours
            self.door.event("kafka.failed", peer=f"{peer}:{port}", why="a bug", exc_info=faults)
        finally:
            del self._open[scope]
            self.connections.give_back(1, (network,))
            await trio.aclose_forcefully(stream)

    async def _serve(self, stream: trio.SocketStream, peer: str, network: str) -> None:
        host, port = stream.socket.getsockname()[:2]
        client = KafkaClient(self.door, peer, network, AdvertisedAddress(plain_address(host), port))
        context = self._tls()
        if context is None:
            parking = Parking(self.parked, stream.socket.fileno())
            await KafkaConnection(stream, client, self._bounds, parking).run()
            return
        secure = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        with trio.move_on_after(HANDSHAKE_SECONDS_MAX) as waited:
            await secure.do_handshake()
        if waited.cancelled_caught:
            return
        client.certificate = certificate_of(secure)
        await KafkaConnection(secure, client, self._bounds).run()


async def listen(
    server: KafkaServer,
    listeners: list[trio.SocketListener],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Until cancelled."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.parked.run)
        await nursery.start(partial(trio.serve_listeners, server.serve, listeners, handler_nursery=nursery))
        task_status.started()


def certificate_of(secure: trio.SSLStream[trio.SocketStream]) -> Certificate | None:
    """Of the client, which TLS has verified."""
    der = secure.getpeercert(binary_form=True)
    if not der:
        return None
    found = peer_certificate(der, secure.getpeercert())
    return Certificate(found.common_name or "", found.subject, (*found.dns, *found.email, *found.uri))


def plain_address(host: str) -> str:
    """An IPv4 address that came in as an IPv6 one, as people write it."""
    return host.removeprefix("::ffff:").partition("%")[0]


def flat(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for each in group.exceptions:
        found += flat(each) if isinstance(each, BaseExceptionGroup) else [each]
    return found
