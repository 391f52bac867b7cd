"""Brokers that are silent, do not read, flood, or say too much: what a bridge waits for and keeps has a bound."""

import contextlib
from pathlib import Path

import pytest
import trio

from rumq.bridge.counts import IN, OUT, RelayCounts
from rumq.bridge.relay import VIA
from rumq.bridge.side import BROKER_ID
from rumq.mqtt.encode import encode
from rumq.mqtt.packets import (
    Connack,
    Disconnect,
    Pingreq,
    Pingresp,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
)
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.bridge.site import RESUMED, Site, answer_subscriptions, publish
from tests.client.fake_broker import Peer, simulated


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
        for attempt in range(2):
            there, _ = await site.remote.accept(RESUMED)
            if attempt:
                peer, _ = await site.local.accept(RESUMED)
                await answer_subscriptions(peer)
            await site.local.accept(RESUMED)
            assert isinstance(await there.receive(), Pubrel)
        assert "does not answer PUBREL" in site.named("bridge.lost")[0]["why"]
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
