"""A bridge's two sessions: how they begin, what happens where one is lost, and that both are connected or none."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
import trio

from rumq.bridge.bridge import BridgeRules, RunningBridge
from rumq.bridge.counts import IN, OUT, RelayCounts
from rumq.bridge.pairing import Pairing, PairingFiles
from rumq.bridge.relay import DOUBTFUL, VIA
from rumq.bridge.remote_addresses import RemoteAddresses
from rumq.bridge.side import BROKER_ID, IDS_MAX, LOCAL, REMOTE, REQUEST_ID, Side
from rumq.bridge.topic_rules import TopicMap, parse_rule
from rumq.client.session.options import ConnectOptions
from rumq.errors import ConnectionLost
from rumq.mqtt.encode import encode
from rumq.mqtt.packets import (
    Connack,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, Peer, simulated

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


@simulated
async def test_it_subscribes_at_each_side_and_relays_between_two_connections(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        peer, connect = await site.local.accept()
        assert connect.properties["session_expiry_interval"] == 99
        assert await answer_subscriptions(peer) == [
            Subscribe(REQUEST_ID, (SubscriptionRequest("up/#", 2, True, True, 1),))
        ]
        peer, _ = await site.remote.accept()
        assert await answer_subscriptions(peer) == [
            Subscribe(REQUEST_ID, (SubscriptionRequest("down/#", 1, True, True, 1),))
        ]
        there, _ = await site.remote.accept(RESUMED)
        here, _ = await site.local.accept(RESUMED)
        await here.send(publish(b"a", 9))
        assert await there.receive() == publish(b"a", 9)
        await there.send(Pubrec(9))
        assert await here.receive() == Pubrec(9)
        await here.send(Pubrel(9))
        assert await there.receive() == Pubrel(9)
        await there.send(Pubcomp(9), publish(b"b", 9, topic="down/1", qos=1))
        assert await here.receive() == Pubcomp(9)
        assert await here.receive() == publish(b"b", 9, topic="down/1", qos=1)
        await here.send(Puback(9))
        assert await there.receive() == Puback(9)
        assert site.named("bridge.connected") == [
            {"name": "b", "remote": "not a rumq broker", "address": "mqtt://far", "mqtt": "5.0", "exactly_once": False}
        ]
        assert not site.named("bridge.doubtful"), "sessions that begin together lose nothing"
        nursery.cancel_scope.cancel()


@simulated
async def test_the_session_here_collects_while_the_other_broker_has_never_been_there(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.remote.is_up = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        peer, _ = await site.local.accept()
        assert await answer_subscriptions(peer)
        await trio.sleep(3000)
        assert len(site.local.tried_at) == 1 and len(site.remote.tried_at) > 50
        pauses = [after - before for before, after in zip(site.remote.tried_at, site.remote.tried_at[1:], strict=False)]
        assert max(pauses) <= 60.0 and min(pauses[-10:]) >= 30.0
        assert len(site.named("bridge.lost")) == 1, "however often"
        site.remote.is_up = True
        peer, _ = await site.remote.accept()
        await answer_subscriptions(peer)
        await site.remote.accept(RESUMED)
        await site.local.accept(RESUMED)
        nursery.cancel_scope.cancel()


@simulated
async def test_one_connection_that_ends_ends_the_other_one_too(tmp_path: Path) -> None:
    """So that the source sends again what the target may not have."""
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        here, there = await site.begun()
        await here.send(publish(b"a", 1))
        await there.receive()
        await there.hang_up()
        assert await here.gone()
        there, _ = await site.remote.accept(RESUMED)
        here, _ = await site.local.accept(RESUMED)
        await here.send(publish(b"a", 1, dup=True))
        assert await there.receive() == publish(b"a", 1, dup=True), "not marked: the target has its session"
        nursery.cancel_scope.cancel()


@simulated
async def test_behind_a_session_here_that_is_new_no_id_of_the_one_before_is_in_use_there(tmp_path: Path) -> None:
    """Else a message would be taken for an earlier one, and be lost. Also if hours and another process lie between."""
    site = Site(tmp_path)
    site.remote.is_up = False
    async with trio.open_nursery() as nursery:
        first = trio.CancelScope()
        nursery.start_soon(run_in, first, site.bridge())
        peer, _ = await site.local.accept(Connack())
        await answer_subscriptions(peer)
        await trio.sleep(100)
        first.cancel()
        site.remote.is_up = True
        nursery.start_soon(site.bridge().run)
        for broker in (site.local, site.remote):
            peer, _ = await broker.accept(RESUMED)
            await answer_subscriptions(peer)
        there, _ = await site.remote.accept(RESUMED)
        here, _ = await site.local.accept(RESUMED)
        await here.send(publish(b"new", 1))
        released: list[int] = []
        while len(released) < IDS_MAX:
            packet = await there.receive()
            assert isinstance(packet, Pubrel), packet
            released.append(packet.packet_id)
            await there.send(Pubcomp(packet.packet_id, Reason.PACKET_IDENTIFIER_NOT_FOUND))
        assert sorted(released) == list(range(1, IDS_MAX + 1))
        assert await there.receive() == publish(b"new", 1)
        assert site.named("bridge.doubtful") == [{"name": "b", "side": LOCAL}]
        nursery.cancel_scope.cancel()


async def run_in(scope: trio.CancelScope, bridge: RunningBridge) -> None:
    with scope:
        await bridge.run()


@simulated
async def test_a_session_that_is_gone_begins_anew_and_what_comes_again_is_marked(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        bridge = site.bridge()
        nursery.start_soon(bridge.run)
        here, there = await site.begun()
        await there.hang_up()
        await here.gone()
        there, _ = await site.remote.accept(Connack())  # without its session
        here, _ = await site.local.accept(RESUMED)
        assert await there.gone() and await here.gone()
        peer, _ = await site.remote.accept(RESUMED)  # the one that was just begun
        assert [type(each) for each in await answer_subscriptions(peer)] == [Subscribe]
        there, _ = await site.remote.accept(RESUMED)
        here, _ = await site.local.accept(RESUMED)
        nursery.start_soon(answer_releases, here)
        await trio.sleep(1)
        assert site.named("bridge.doubtful") == [{"name": "b", "side": REMOTE}]
        await here.send(publish(b"a", 1, dup=True), publish(b"b", 2))
        again, fresh = await there.receive(), await there.receive()
        assert isinstance(again, Publish) and again.properties == {"user_properties": [(DOUBTFUL, "1")]}
        assert fresh == publish(b"b", 2)
        assert bridge.counts.relayed[OUT].doubtful == 1
        nursery.cancel_scope.cancel()


async def answer_releases(peer: Peer) -> None:
    for _ in range(IDS_MAX):
        packet = await peer.receive()
        assert isinstance(packet, Pubrel)
        await peer.send(Pubcomp(packet.packet_id))


@simulated
async def test_brokers_that_say_who_they_are_get_no_message_twice(tmp_path: Path) -> None:
    site = Site(tmp_path, "# both 2")
    local = Connack(True, Reason.SUCCESS, Properties(user_properties=[(BROKER_ID, "L")]))
    remote = Connack(True, Reason.SUCCESS, Properties(user_properties=[(BROKER_ID, "R")]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        here, there = await site.begun(local, remote)
        passed = Properties(user_properties=[(VIA, "R")])
        await here.send(Publish("a", b"back", 2, packet_id=1, properties=passed), publish(b"on", 2))
        assert await here.receive() == Pubrec(1)
        on = await there.receive()
        assert isinstance(on, Publish) and on.payload == b"on" and on.properties == {"user_properties": [(VIA, "L")]}
        nursery.cancel_scope.cancel()


@simulated
async def test_the_source_is_told_no_more_than_the_target_takes(tmp_path: Path) -> None:
    """Else it would have more on its way than the target allows, which ends the connection. MQTT 5.0, 4.9"""
    site = Site(tmp_path, inflight_max=50)
    few = Connack(True, Reason.SUCCESS, Properties(receive_maximum=7))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        for broker, connack in ((site.local, RESUMED), (site.remote, few)):
            peer, _ = await broker.accept(connack)
            await answer_subscriptions(peer)
        _, at_remote = await site.remote.accept(few)
        _, at_local = await site.local.accept(RESUMED)
        assert at_remote.properties["receive_maximum"] == 50
        assert at_local.properties["receive_maximum"] == 7
        nursery.cancel_scope.cancel()


@simulated
async def test_filters_that_are_no_longer_in_the_settings_are_unsubscribed(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        first = trio.CancelScope()
        nursery.start_soon(run_in, first, site.bridge())
        await site.begun()
        await trio.sleep(0.1)
        first.cancel()
        site.rules = ("other/# out 2",)
        nursery.start_soon(site.bridge().run)
        peer, _ = await site.local.accept(RESUMED)
        assert await answer_subscriptions(peer) == [
            Unsubscribe(REQUEST_ID, ("up/#",)),
            Subscribe(REQUEST_ID, (SubscriptionRequest("other/#", 2, True, True, 1),)),
        ]
        peer, _ = await site.remote.accept(RESUMED)
        assert await answer_subscriptions(peer) == [Unsubscribe(REQUEST_ID, ("down/#",))]
        nursery.cancel_scope.cancel()


@simulated
async def test_what_the_target_refuses_for_now_is_sent_again_after_a_pause(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        here, there = await site.begun()
        await here.send(publish(b"a", 1))
        await there.receive()
        refused_at = trio.current_time()
        await there.send(Pubrec(1, Reason.QUOTA_EXCEEDED))
        assert await there.receive() == publish(b"a", 1)
        assert trio.current_time() - refused_at <= 1.0
        await there.send(Pubrec(1, Reason.NOT_AUTHORIZED))
        assert await here.receive() == Pubrec(1)
        await trio.sleep(0.1)
        assert [each["topic"] for each in site.named("bridge.refused")] == ["up/1"]
        nursery.cancel_scope.cancel()


@simulated
async def test_bandwidth_bounds_messages_and_not_answers(tmp_path: Path) -> None:
    site = Site(tmp_path, bytes_per_second_max=100)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        here, there = await site.begun()
        begun = trio.current_time()
        await here.send(*(publish(bytes(200), packet_id) for packet_id in range(1, 5)))
        await there.send(publish(b"b", 9, topic="down/1", qos=1))
        assert isinstance(await here.receive(), Publish) and trio.current_time() - begun < 0.1
        await here.send(Puback(9))
        for _ in range(4):
            packet: Packet = Pingreq()
            while not isinstance(packet, Publish):
                packet = await there.receive()
        assert 5.9 <= trio.current_time() - begun <= 6.5
        nursery.cancel_scope.cancel()


@simulated
async def test_a_broker_that_says_nothing_is_lost(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        await site.begun()
        begun = trio.current_time()
        await site.remote.accept(RESUMED)
        assert 15.0 <= trio.current_time() - begun <= 21.0
        assert "sent nothing" in site.named("bridge.lost")[0]["why"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("said", "seconds"), [(0, 10), (4, 4), (60, 10)])
def test_whatever_a_broker_says_of_keep_alive_a_dead_line_is_seen(tmp_path: Path, said: int, seconds: float) -> None:
    """MQTT 5.0, 3.2.2.3.14: 0 says that the broker does not watch the line. The bridge does, every 10 s of its own."""

    @simulated
    async def ask() -> None:
        site = Site(tmp_path)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(site.bridge().run)
            here, _ = await site.begun(remote=Connack(True, Reason.SUCCESS, Properties(server_keep_alive=said)))
            nursery.start_soon(answer_pings, here)
            begun = trio.current_time()
            await site.remote.accept(RESUMED)
            assert 1.5 * seconds <= trio.current_time() - begun <= 2.1 * seconds
            assert "the remote broker sent nothing" in site.named("bridge.lost")[0]["why"]
            nursery.cancel_scope.cancel()

    ask()


async def answer_pings(peer: Peer) -> None:
    with contextlib.suppress(EOFError):
        while isinstance(await peer.receive(), Pingreq):
            await peer.send(Pingresp())


@simulated
async def test_a_broker_that_takes_long_and_hangs_up_at_once_is_asked_with_longer_pauses(tmp_path: Path) -> None:
    """Only time in which the bridge relays counts: that of SUBACK or of the release of ids does not."""
    site = Site(tmp_path, retry_seconds_max=5.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        _, there = await site.begun()
        pauses = []
        for _ in range(8):
            await there.hang_up()
            peer = await site.remote.arrived()
            pauses.append(site.named("bridge.lost")[-1]["retry_seconds"])
            await peer.receive()
            await trio.sleep(6.0)
            await peer.send(RESUMED)
            there = peer
            await site.local.accept(RESUMED)
            while len(site.named("bridge.connected")) <= len(pauses):
                await trio.sleep(0.01)
        assert max(pauses) > 2.4, pauses
        nursery.cancel_scope.cancel()


@simulated
async def test_a_broker_that_refuses_the_login_is_asked_again(tmp_path: Path) -> None:
    """For ever: somebody may correct the password file."""
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        peer, _ = await site.local.accept()
        await answer_subscriptions(peer)
        for _ in range(20):
            await site.remote.accept(Connack(False, Reason.NOT_AUTHORIZED))
        assert len(site.named("bridge.lost")) == 1
        peer, _ = await site.remote.accept()
        await answer_subscriptions(peer)
        nursery.cancel_scope.cancel()


@simulated
async def test_what_retention_took_from_a_session_is_told(tmp_path: Path) -> None:
    site = Site(tmp_path)
    lost = Connack(True, Reason.SUCCESS, Properties(user_properties=[("rumq-lost", "main/g1/p0 1-7 7 retention")]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        peer, _ = await site.local.accept(lost)
        await answer_subscriptions(peer)
        assert site.named("bridge.gap") == [{"name": "b", "side": LOCAL, "lost": "main/g1/p0 1-7 7 retention"}]
        nursery.cancel_scope.cancel()


@simulated
async def test_a_target_that_does_not_read_slows_its_source_and_qos_0_is_dropped(tmp_path: Path) -> None:
    """Memory is bounded by bytes, and not by messages alone; the other direction goes on."""
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        bridge = site.bridge()
        nursery.start_soon(bridge.run)
        here, there = await site.begun()
        site.remote.hold()
        for packet_id in range(1, 9):
            await here.send(publish(bytes(2**20), packet_id), Publish("up/0", b"", 0))
            await trio.sleep(0.1)
        assert 1 <= bridge.counts.relayed[OUT].dropped < 8
        relayed = bridge.counts.relayed[OUT]
        for _ in range(20):
            await trio.sleep(5)
            await there.send(Pingresp())
        assert not site.named("bridge.lost"), "that nothing is read from the source is no silence of its"
        assert relayed.dropped < 8, "it is not read from"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("bytes_per_second", [0, 10**6])
def test_a_source_that_sends_more_than_the_target_takes_is_read_up_to_its_pubrels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_per_second: int
) -> None:
    """As one of MQTT 3.1.1 may: large messages, of which the target takes two, and PUBREL behind them all."""
    monkeypatch.setattr("rumq.bridge.link.WAITING_BYTES_MAX", 2**14)
    monkeypatch.setattr("rumq.bridge.two_way_relay.HELD_BYTES_MAX", 2**14)

    @simulated
    async def relay() -> None:
        site = Site(tmp_path, bytes_per_second_max=bytes_per_second)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(site.bridge().run)
            here, there = await site.begun(local=Connack(True, Reason.SUCCESS, Properties(receive_maximum=2)))
            await there.send(*(publish(bytes(10_000), packet_id, topic="down/1") for packet_id in range(1, 21)))
            nursery.start_soon(release_each, there)
            found, on_way = list[int](), set[int]()
            while len(found) < 20 or on_way:
                packet = await here.receive()
                if isinstance(packet, Publish):
                    assert packet.packet_id is not None
                    found.append(packet.packet_id)
                    on_way.add(packet.packet_id)
                    assert len(on_way) <= 2
                    await here.send(Pubrec(packet.packet_id))
                elif isinstance(packet, Pubrel):
                    on_way.discard(packet.packet_id)
                    await here.send(Pubcomp(packet.packet_id))
            assert found == list(range(1, 21)) and not site.named("bridge.lost")
            nursery.cancel_scope.cancel()

    relay()


async def release_each(peer: Peer) -> None:
    while True:
        packet = await peer.receive()
        if isinstance(packet, Pubrec):
            await peer.send(Pubrel(packet.packet_id))


@simulated
async def test_a_broker_that_does_not_release_ids_is_left_and_asked_again(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        for broker, connack in ((site.local, Connack()), (site.remote, RESUMED)):
            peer, _ = await broker.accept(connack)
            await answer_subscriptions(peer)
        for _ in range(2):
            there, _ = await site.remote.accept(RESUMED)
            await site.local.accept(RESUMED)
            assert isinstance(await there.receive(), Pubrel)
        assert "does not answer PUBREL" in site.named("bridge.lost")[0]["why"]
        nursery.cancel_scope.cancel()


# --- on a node of a cluster, of which another one may take the bridge over


@simulated
async def test_who_was_replaced_while_it_connected_reads_and_relays_nothing(tmp_path: Path) -> None:
    """It may be paused between its two connections: its successor has ended the first one, and what the broker had sent
    on that is old. `tests/bridge/nodes/test_two_processes.py` shows what it would do."""
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        for broker in (site.local, site.remote):
            peer, _ = await broker.accept(RESUMED)
            await answer_subscriptions(peer)
        there, _ = await site.remote.accept(RESUMED)
        await there.send(publish(b"old", 9, topic="down/1"), Pubrel(8))
        site.is_ours = False
        here, _ = await site.local.accept(RESUMED)
        await here.send(publish(b"old", 9))
        assert await here.gone() and await there.gone()
        tried = len(site.local.tried_at + site.remote.tried_at)
        await trio.sleep(100)
        assert len(site.local.tried_at + site.remote.tried_at) == tried, "nor does it take the successor's sessions"
        site.is_ours = True
        await site.remote.accept(RESUMED)
        nursery.cancel_scope.cancel()


@simulated
async def test_a_new_session_that_could_not_be_noted_ends_again_on_its_own_connection(tmp_path: Path) -> None:
    """Else its successor would not see that it is new, and packet ids of the one before would swallow messages. Another
    CONNECT would end the successor's session."""
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        peer, _ = await site.local.accept(RESUMED)
        await answer_subscriptions(peer)
        peer, _ = await site.remote.accept(RESUMED)
        await answer_subscriptions(peer)
        there, _ = await site.remote.accept(Connack(False))  # it lost the session meanwhile
        site.is_ours = False
        await site.local.accept(RESUMED)
        ended = await there.receive()
        assert isinstance(ended, Disconnect) and ended.properties == {"session_expiry_interval": 0}
        assert await there.gone()
        nursery.cancel_scope.cancel()


@simulated
async def test_figures_say_where_it_is_connected_and_since_when(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        bridge = site.bridge()
        nursery.start_soon(bridge.run)
        site.remote.is_up = False
        peer, _ = await site.local.accept()
        await answer_subscriptions(peer)
        await trio.sleep(100)
        told = bridge.counts.figures()
        assert (told["up"], told["address"]) == (0, "mqtt://far") and "all attempts failed" in told["why"]
        assert told["since_us"] < 1_000_000, "since the first failure"
        nursery.cancel_scope.cancel()


@simulated
async def test_a_broker_that_does_not_read_its_answers_is_not_read_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of messages that are not relayed the bridge answers itself: nobody else would slow their source."""
    monkeypatch.setattr("rumq.bridge.link.WAITING_BYTES_MAX", 2**14)
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        bridge = site.bridge()
        nursery.start_soon(bridge.run)
        _, there = await site.begun()
        site.remote.hold()
        flood = encode(publish(b"", 1, topic="x", qos=1), 5) * 1_000
        with contextlib.suppress(trio.BrokenResourceError):
            for _ in range(60):
                await there.send_bytes(flood)
        await site.remote.accept(RESUMED)
        assert "sent nothing" in site.named("bridge.lost")[0]["why"]
        assert 4 * bridge.counts.relayed[IN].unmapped <= 2**14 + 4 * 2**18 // 8 < 4 * 60_000
        nursery.cancel_scope.cancel()


@simulated
async def test_a_broker_that_sends_messages_instead_of_answers_to_pubrel_is_left(tmp_path: Path) -> None:
    """Those of QoS 0 are dropped, of others it has some in flight, and not without end."""
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        for broker, connack in ((site.local, Connack()), (site.remote, RESUMED)):
            peer, _ = await broker.accept(connack)
            await answer_subscriptions(peer)
        there, _ = await site.remote.accept(RESUMED)
        await site.local.accept(RESUMED)
        flood = encode(Publish("down/1", bytes(2**20), 0), 5) * 100
        flood += encode(publish(bytes(2**20), 1, topic="down/1"), 5) * 100
        with contextlib.suppress(trio.BrokenResourceError):
            await there.send_bytes(flood)
        await site.remote.accept(RESUMED)
        assert "instead of" in site.named("bridge.lost")[0]["why"]
        nursery.cancel_scope.cancel()


@simulated
async def test_messages_that_come_while_it_subscribes_are_left_out_however_large(tmp_path: Path) -> None:
    """They come again on the next connection; mosquitto sends them as soon as the session is there."""
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        bridge = site.bridge()
        nursery.start_soon(bridge.run)
        peer, _ = await site.local.accept(RESUMED)
        await answer_subscriptions(peer)
        peer, _ = await site.remote.accept(RESUMED)
        packet = await peer.receive()
        assert isinstance(packet, Subscribe)
        large = encode(publish(bytes(2**23), 1, topic="down/1"), 5)
        answer = encode(Suback(packet.packet_id, (Reason.GRANTED_QOS_2,)), 5)
        await peer.send_bytes(large + encode(publish(b"", 2, topic="down/1"), 5) + answer)
        assert isinstance(await peer.receive(), Disconnect)
        await site.remote.accept(RESUMED)
        nursery.cancel_scope.cancel()


@simulated
async def test_what_a_broker_says_of_itself_is_kept_short(tmp_path: Path) -> None:
    """Its id goes with each message, and what its session lost into the events."""
    site = Site(tmp_path)
    told = [(BROKER_ID, "i" * 10_000), *[("rumq-lost", "x" * 300)] * 150]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        here, there = await site.begun(remote=Connack(True, Reason.SUCCESS, Properties(user_properties=told)))
        await there.send(publish(b"", 1, topic="down/1", qos=1))
        packet = await here.receive()
        assert isinstance(packet, Publish) and VIA not in dict(packet.properties.get("user_properties", ()))
        gaps = site.named("bridge.gap")
        assert len(gaps) <= 2 * 100 and all(len(each["lost"]) <= 200 for each in gaps)
        nursery.cancel_scope.cancel()


@simulated
async def test_a_fault_of_ours_is_told_and_the_bridge_begins_again(tmp_path: Path) -> None:
    """The other bridges of the broker run in the same process: what one broker sends must not end them."""
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        bridge = site.bridge()
        nursery.start_soon(bridge.run)
        here, there = await site.begun()
        bridge.counts.relayed[IN] = None  # type: ignore[assignment]
        await there.hang_up()
        there, _ = await site.remote.accept(RESUMED)
        here, _ = await site.local.accept(RESUMED)
        await there.send(publish(b"x", 1, topic="nowhere"))
        assert await here.gone()
        await trio.sleep(0.01)
        lost = site.named("bridge.lost")[1]
        assert lost["why"] == "a bug: AttributeError" and lost["exc_info"].exceptions
        bridge.counts.relayed[IN] = RelayCounts()
        there, _ = await site.remote.accept(RESUMED)
        here, _ = await site.local.accept(RESUMED)
        await there.send(publish(b"x", 1, topic="down/1"))
        assert isinstance(await here.receive(), Publish)
        nursery.cancel_scope.cancel()
