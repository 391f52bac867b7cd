"""MQTT clients over WebSocket, each relayed to the broker as its token's user.

docs/reference/gateway.md, "MQTT over WebSocket"
Bounded: connections, those that have not logged in, bytes of CONNECT, and the time that a client has to read. Beyond
the bound of those without a login the oldest of the network with the most goes, so that a newcomer is always heard.
What a client does not read stays with the broker, which treats it as any slow client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import trio

from rumq.auth.quota_holder import holder_of
from rumq.gateway.access.admission import RequestAdmission, Unauthorized
from rumq.gateway.access.host_names import HostNames
from rumq.gateway.access.tokens import Token, hash_of
from rumq.gateway.broker.broker_socket import header_for, open_broker
from rumq.gateway.http.misuse_reports import is_told
from rumq.gateway.http.network_shares import NetworkShares
from rumq.gateway.relay.login import (
    Login,
    LoginRefused,
    check_roles,
    farewell,
    for_broker,
    refusal,
    secret_of,
)
from rumq.gateway.relay.role_gate import RoleGate
from rumq.gateway.relay.websocket import NORMAL, POLICY, READ_BYTES, WebSocket, WebSocketBroken, answer, refused
from rumq.mqtt import packets as p
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason

LOGIN_SECONDS_MAX = 10.0
WAITING_MAX = 256  # connections that have not logged in
OF_A_NETWORK_MAX = 64  # of them
Event = Callable[..., None]


class RelayLimits:
    """connections_max: of relayed clients; the others: of the broker's settings"""

    def __init__(self, connections_max: int, connect_bytes_max: int, packet_bytes_max: int) -> None:
        self.connections_max = connections_max
        self.connect_bytes_max, self.packet_bytes_max = connect_bytes_max, packet_bytes_max


class Relay:
    """One client that has logged in. key: of its token; ended: why its connection is to end"""

    def __init__(self, key: str, token: Token) -> None:
        self.key, self.token = key, token
        self.scope = trio.CancelScope()
        self.ended = ""

    def end(self, why: str) -> None:
        self.ended = why
        self.scope.cancel()


class Relays:
    """path: of the broker's socket; now: monotonic seconds; count: of clients that have logged in"""

    def __init__(
        self, path: str, limits: RelayLimits, admission: RequestAdmission, hosts: HostNames, event: Event,
        now: Callable[[], float],
    ) -> None:  # fmt: skip
        self._path, self._limits, self._admission = path, limits, admission
        self._event, self._now, self._hosts = event, now, hosts
        self._relays: set[Relay] = set()
        self._waiting: NetworkShares[trio.CancelScope] = NetworkShares(
            WAITING_MAX, OF_A_NETWORK_MAX, self._shed
        )  # connections that have not logged in

    @property
    def count(self) -> int:
        return len(self._relays)

    @property
    def waiting(self) -> int:
        """Connections that have not logged in."""
        return len(self._waiting)

    @property
    def shed(self) -> int:
        """How many of them were closed to make room, so far."""
        return self._waiting.shed

    def _shed(self, scope: trio.CancelScope) -> None:
        scope.cancel()
        if is_told(self.shed):
            self._event("gateway.overloaded", connections=WAITING_MAX, turned_away=self.shed)

    def recheck(self, tokens: Mapping[str, Token]) -> None:
        """There are other tokens: clients whose token is gone, or may do something else, connect anew."""
        for relay in list(self._relays):
            if tokens.get(relay.key) != relay.token:
                relay.end("the token was removed or changed")

    async def serve(self, below: Any, data: bytes, host: str, port: int) -> None:
        """One connection. below: its stream; data: its request, and what was read behind it

        raises: OSError, trio.BrokenResourceError of the stream"""
        login = Login(self._limits.connect_bytes_max)
        admitted = None
        with trio.CancelScope() as until_shed:
            self._waiting.add(until_shed, holder_of(host))
            try:
                admitted = await self._logged_in(below, data, login, host)
            except WebSocketBroken:
                pass  # the client's
            finally:
                self._waiting.discard(until_shed)
        if admitted is not None:
            websocket, relay, connect = admitted
            try:
                await self._relayed(websocket, relay, connect, login.rest, host, port)
            except WebSocketBroken:
                pass

    async def _logged_in(
        self, below: Any, data: bytes, login: Login, host: str
    ) -> tuple[WebSocket, Relay, p.Connect] | None:
        """From the request to CONNECT; None: it was refused.

        raises: WebSocketBroken, OSError, trio.BrokenResourceError"""
        head, _, rest = data.partition(b"\r\n\r\n")
        found = answer(head + b"\r\n\r\n", self._hosts)
        if self.count >= self._limits.connections_max:
            found = refused(503, "there are too many MQTT clients here")
        await below.send_all(found.data)
        if found.wire is None:
            return None
        found.wire.receive_data(rest)
        websocket = WebSocket(below, found.wire)
        try:
            connect = None
            with trio.move_on_after(LOGIN_SECONDS_MAX):
                connect = await received(websocket, login)
            if connect is None:
                await websocket.close(POLICY, "no CONNECT came")
                return None
            return websocket, await self._admitted(connect, host), connect
        except LoginRefused as fault:
            if fault.answer:
                await websocket.send(fault.answer)
            await websocket.close(POLICY, fault.why)
            return None

    async def _admitted(self, connect: p.Connect, host: str) -> Relay:
        """raises: LoginRefused, after a delay for a wrong token"""
        secret = secret_of(connect)
        try:
            token = self._admission.token_of(f"Bearer {secret}", host, self._now())
        except Unauthorized as fault:
            if fault.seconds and self._admission.has_room(host):
                with self._admission.delayed(host):
                    await trio.sleep(fault.seconds)
            raise refusal(connect.version, Reason.NOT_AUTHORIZED, "the password is no token that is known") from None
        check_roles(connect, token)
        if self.count >= self._limits.connections_max:
            raise refusal(connect.version, Reason.QUOTA_EXCEEDED, "there are too many MQTT clients here")
        return Relay(hash_of(secret.strip()), token)

    async def _relayed(
        self, websocket: WebSocket, relay: Relay, connect: p.Connect, rest: bytes, host: str, port: int
    ) -> None:
        self._relays.add(relay)
        try:
            with relay.scope:
                broker = await open_broker(self._path, header_for(host, port))
                async with broker:
                    await broker.send_all(for_broker(connect, relay.token.user))
                    await self._pumped(websocket, broker, relay, connect, rest, f"{host}:{port}")
        except (OSError, trio.BrokenResourceError):
            fault = refusal(connect.version, Reason.SERVER_UNAVAILABLE, "the broker does not answer")
            await websocket.send(fault.answer)
            await websocket.close(POLICY, fault.why)
        finally:
            self._relays.discard(relay)
        if relay.ended:
            await websocket.close(POLICY, relay.ended)

    async def _pumped(
        self,
        websocket: WebSocket,
        broker: trio.SocketStream,
        relay: Relay,
        connect: p.Connect,
        rest: bytes,
        peer: str,
    ) -> None:
        """Both directions, until either side ends."""
        gate = None
        if not (relay.token.may("read") and relay.token.may("publish")):
            told = Refusals(self._event, connect.client_id, peer, relay.token)
            gate = RoleGate(connect.version, relay.token, self._limits.packet_bytes_max, told)
        faults: list[MqttFault] = []
        async with trio.open_nursery() as nursery:

            async def pass_on(direction: Callable[[], Any]) -> None:
                try:
                    await direction()
                except MqttFault as fault:
                    faults.append(fault)
                except (WebSocketBroken, OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                    pass  # one of them has left
                nursery.cancel_scope.cancel()

            nursery.start_soon(pass_on, partial(to_broker, websocket, broker, gate, rest))
            nursery.start_soon(pass_on, partial(to_client, websocket, broker, gate))
        for fault in faults:
            if words := farewell(connect.version, fault.reason, fault.message):
                await websocket.send(words)
            await websocket.close(POLICY, fault.message)
            return
        await websocket.close(NORMAL)


class Refusals:
    """Reports what a client's token did not allow: the 1st, 2nd, 4th, 8th ... of a connection."""

    def __init__(self, event: Event, client_id: str, peer: str, token: Token) -> None:
        self._event, self._client_id, self._peer, self._token = event, client_id, peer, token
        self._count = 0

    def __call__(self, action: str, topic: str) -> None:
        self._count += 1
        if self._count & (self._count - 1) == 0:
            self._event(
                "relay.refused", client_id=self._client_id, peer=self._peer, token=self._token.name, action=action,
                topic=topic, refused=self._count,
            )  # fmt: skip


async def received(websocket: WebSocket, login: Login) -> p.Connect | None:
    """CONNECT; None if the client leaves before. raises: LoginRefused, WebSocketBroken"""
    while data := await websocket.receive():
        connect = login.receive(data)
        if connect is not None:
            return connect
    return None


async def to_broker(websocket: WebSocket, broker: trio.SocketStream, gate: RoleGate | None, data: bytes) -> None:
    """data: what came behind CONNECT. raises: WebSocketBroken, MqttFault, OSError"""
    while True:
        if data:
            up, down = (data, b"") if gate is None else gate.from_client(data)
            if down:
                await websocket.send(down)
            if up:
                await broker.send_all(up)
        data = await websocket.receive()
        if not data:
            return


async def to_client(websocket: WebSocket, broker: trio.SocketStream, gate: RoleGate | None) -> None:
    """raises: WebSocketBroken, MqttFault, OSError"""
    while data := await broker.receive_some(READ_BYTES):
        down = bytes(data) if gate is None else gate.from_broker(bytes(data))
        if down:
            await websocket.send(down)
