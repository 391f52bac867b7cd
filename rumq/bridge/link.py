"""Both connections of a bridge, as long as both last: reading, pacing, keep alive. Knows no session."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from rumq.bridge.relay import PacketRelay
from rumq.bridge.side import OTHER, Side, SideConnection
from rumq.bridge.two_way_relay import TwoWayRelay
from rumq.errors import ClientError, ConnectionLost
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.packets import Pingreq

AGAIN_SECONDS = 1.0  # pause before what was refused for now is sent again
WAITING_BYTES_MAX = 4 * 2**20  # of what waits for a target: above it its source is not read from


class BackToPreferred(ClientError):
    """The link ends for a better one."""


class Link:
    """relays: by the source; keep_alives: seconds, by side, 0: none; bytes_per_second_max: of payloads, 0: any

    preferred: the link ends once this one can be reached, which is tried every look_seconds"""

    def __init__(
        self, connections: dict[str, SideConnection], relays: dict[str, PacketRelay], keep_alives: dict[str, float],
        bytes_per_second_max: int, preferred: Side | None = None, look_seconds: float = 0.0,
    ) -> None:  # fmt: skip
        self._connections, self._keep_alives, self._rate = connections, keep_alives, bytes_per_second_max
        outputs = {side: each.stream for side, each in connections.items()}
        self._relay = TwoWayRelay(relays, {**outputs}, is_paced=bytes_per_second_max > 0)
        self._paused: set[str] = set()  # sources that are not read from
        self._preferred, self._look_seconds = preferred, look_seconds
        self._changed = trio.lowlevel.ParkingLot()

    async def run(self) -> None:
        """raises: ClientError"""
        lost: list[ClientError] = []

        async def until_lost(part: Callable[[], Awaitable[None]]) -> None:
            try:
                await part()
            except ClientError as fault:
                lost.append(fault)
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for side, connection in self._connections.items():
                for part in (self._read, self._keep_alive, self._send_again, self._pace):
                    nursery.start_soon(until_lost, partial(part, side))
                nursery.start_soon(until_lost, connection.stream.write)
            if self._preferred is not None:
                nursery.start_soon(until_lost, partial(self._look_for, self._preferred))
        raise lost[0]

    async def _read(self, side: str) -> None:
        stream, relay = self._connections[side].stream, self._relay
        try:
            packets, chunk = stream.take_received()
        except MqttFault as fault:
            raise ConnectionLost(f"the broker broke the protocol: {fault}") from fault
        for packet in packets:
            relay.take(side, packet)
        while True:
            relay.receive(side, chunk)
            self._changed.unpark_all()
            await self._wait_for_room(side)
            chunk = await stream.receive_bytes()

    async def _wait_for_room(self, source: str) -> None:
        """TCP's flow control slows a source whose messages are large: the receive maximum counts only messages."""
        self._paused.add(source)
        while self._has_to_pause(source):
            await self._changed.park()
        await self._connections[OTHER[source]].stream.wait_unsent(WAITING_BYTES_MAX)
        self._paused.discard(source)
        stream = self._connections[source].stream
        stream.received_at = trio.current_time()
        if self._relay.answered_bytes[source] > WAITING_BYTES_MAX:
            # Nobody else slows a source whose messages the bridge answers itself. Who does not read counts as silent.
            await stream.wait_unsent(WAITING_BYTES_MAX)
            self._relay.answered_bytes[source] = 0

    def _has_to_pause(self, source: str) -> bool:
        relay = self._relay
        is_waiting = relay.paced_bytes[source] > WAITING_BYTES_MAX or relay.is_full(source)
        return is_waiting and not relay.may_read_on(source)

    async def _pace(self, side: str) -> None:
        """Messages from this side, no faster than the bandwidth; answers do not wait for them."""
        while True:
            while not self._relay.has_paced(side):
                await self._changed.park()
            size = self._relay.move_paced(side)
            self._changed.unpark_all()
            await trio.sleep(size / self._rate)

    async def _send_again(self, source: str) -> None:
        while True:
            await trio.sleep(AGAIN_SECONDS)
            self._relay.send_again(source)

    async def _keep_alive(self, side: str) -> None:
        """PINGREQ twice per interval; 1.5 intervals of silence end the link. MQTT 5.0, 3.1.2.10."""
        connection, seconds = self._connections[side], self._keep_alives[side]
        if not seconds:
            await trio.sleep_forever()
        while True:
            await trio.sleep(seconds / 2)
            silence = trio.current_time() - connection.stream.received_at
            if silence >= 1.5 * seconds and side not in self._paused:
                raise ConnectionLost(f"the {side} broker sent nothing for {silence:.0f} s")
            connection.stream.send(Pingreq())

    async def _look_for(self, preferred: Side) -> None:
        """raises: BackToPreferred once a connection to it can be opened"""
        while True:
            await trio.sleep(self._look_seconds)
            with contextlib.suppress(OSError, ConnectionLost, trio.TooSlowError):
                with trio.fail_after(preferred.options.connect_seconds_max):
                    stream = await preferred.open_stream()
                await trio.aclose_forcefully(stream)
                raise BackToPreferred(f"{preferred.address} is there again")
