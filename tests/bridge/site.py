"""Two brokers that do as a test says, and the bridge between them. No process, no socket, no clock."""

from pathlib import Path
from typing import Any

import trio

from rumq.bridge.bridge import BridgeRules, RunningBridge
from rumq.bridge.counts import IN, OUT
from rumq.bridge.pairing import Pairing, PairingFiles
from rumq.bridge.remote_addresses import RemoteAddresses
from rumq.bridge.side import IDS_MAX, LOCAL, REMOTE, Side
from rumq.bridge.topic_rules import TopicMap, parse_rule
from rumq.client.session.options import ConnectOptions
from rumq.errors import ConnectionLost
from rumq.mqtt.packets import (
    Connack,
    Disconnect,
    Packet,
    Pubcomp,
    Publish,
    Pubrel,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, Peer

RESUMED = Connack(session_present=True)
RULES = ("up/# out 2", "down/# in 1")


class HeldBroker(FakeBroker):
    """One that can stop to read."""

    async def open_stream(self) -> trio.abc.Stream:
        self._stream = await super().open_stream()
        return self._stream

    def hold(self) -> None:
        self._stream.send_stream.send_all_hook = trio.sleep_forever  # type: ignore[attr-defined]


class Site:
    """Two brokers that do as a test says, and the bridge between them. said: its events

    is_ours: no other process has taken the bridge over"""

    def __init__(self, folder: Path, *rules: str, **more: Any) -> None:
        self.folder, self.rules, self.more = folder, rules or RULES, more
        self.local, self.remote = FakeBroker(), HeldBroker()
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.is_ours = True
        self.began_us = int(trio.current_time() * 1_000_000)

    async def still_ours(self) -> None:
        if not self.is_ours:
            raise ConnectionLost("another node may run the bridges now")

    def bridge(self) -> RunningBridge:
        """As of a process that has just begun."""
        rules = tuple(map(parse_rule, self.rules))
        filters = {LOCAL: TopicMap(rules, OUT).subscriptions(), REMOTE: TopicMap(rules, IN).subscriptions()}
        options = ConnectOptions(session_expiry=99, keep_alive=10, topic_alias_maximum=0)
        sides = {
            name: Side(name, broker.open_stream, options, filters[name], "mqtt://far" if name == REMOTE else name)
            for name, broker in ((LOCAL, self.local), (REMOTE, self.remote))
        }
        pairing = Pairing(PairingFiles(self.folder), "b")
        return RunningBridge(
            BridgeRules("b", rules, **self.more), sides[LOCAL], RemoteAddresses([sides[REMOTE]]), pairing, self._tell,
            lambda: int(trio.current_time() * 1_000_000) - self.began_us, self.still_ours,
        )  # fmt: skip

    def _tell(self, event: str, **fields: Any) -> None:
        self.said.append((event, fields))

    async def begun(self, local: Connack = RESUMED, remote: Connack = RESUMED) -> tuple[Peer, Peer]:
        """Both are subscribed and connected. local, remote: CONNACK of the first ones"""
        for broker, connack in ((self.local, local), (self.remote, remote)):
            peer, connect = await broker.accept(connack)
            assert not connect.clean_start
            await answer_subscriptions(peer)
        kept = [Connack(True, Reason.SUCCESS, each.properties) for each in (remote, local)]
        there, _ = await self.remote.accept(kept[0])
        here, _ = await self.local.accept(kept[1])
        return here, there

    def named(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.said if name == event]


async def answer_subscriptions(peer: Peer) -> list[Packet]:
    """Up to DISCONNECT; returns the requests."""
    found: list[Packet] = []
    while not isinstance(packet := await peer.receive(), Disconnect):
        found.append(packet)
        if isinstance(packet, Subscribe):
            await peer.send(Suback(packet.packet_id, (Reason.GRANTED_QOS_2,) * len(packet.filters)))
        elif isinstance(packet, Unsubscribe):
            await peer.send(Unsuback(packet.packet_id, (Reason.SUCCESS,) * len(packet.filters)))
    return found


def publish(payload: bytes, packet_id: int, *, topic: str = "up/1", qos: int = 2, dup: bool = False) -> Publish:
    return Publish(topic, payload, qos, dup=dup, packet_id=packet_id)


async def answer_releases(peer: Peer) -> None:
    for _ in range(IDS_MAX):
        packet = await peer.receive()
        assert isinstance(packet, Pubrel)
        await peer.send(Pubcomp(packet.packet_id))


async def run_in(scope: trio.CancelScope, bridge: RunningBridge) -> None:
    with scope:
        await bridge.run()
