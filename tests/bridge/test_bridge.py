"""A bridge's two sessions: how they begin, what happens where one is lost, and that both are connected or none."""

from pathlib import Path

import trio

from rumq.bridge.counts import OUT
from rumq.bridge.relay import DOUBTFUL, VIA
from rumq.bridge.side import BROKER_ID, HOLD, IDS_MAX, LOCAL, REMOTE, REQUEST_ID
from rumq.mqtt.packets import (
    Connack,
    Disconnect,
    Packet,
    Pingreq,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.bridge.site import RESUMED, Site, answer_releases, answer_subscriptions, publish, run_in
from tests.client.fake_broker import simulated


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
        nursery.cancel_scope.cancel()


@simulated
async def test_retained_messages_are_asked_for_again_once_the_other_broker_is_there(tmp_path: Path) -> None:
    """They wait in the memory of a shard, which may have died while the other broker was away. Where it did not, they
    wait still: `tests/shards/delivery/test_held.py` shows that each comes once."""
    site = Site(tmp_path)
    site.remote.is_up = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        peer, _ = await site.local.accept()
        [first] = await answer_subscriptions(peer)
        await trio.sleep(100)
        site.remote.is_up = True
        peer, _ = await site.remote.accept()
        await answer_subscriptions(peer)
        there, _ = await site.remote.accept(RESUMED)
        peer, connect = await site.local.accept(RESUMED)
        assert (HOLD, "") in connect.properties["user_properties"], "until both are connected nothing is sent"
        [again] = await answer_subscriptions(peer)
        assert isinstance(first, Subscribe) and isinstance(again, Subscribe)
        assert [each.filters[0].retain_handling for each in (first, again)] == [1, 0]
        here, _ = await site.local.accept(RESUMED)
        await here.send(publish(b"a", 1))
        assert await there.receive() == publish(b"a", 1)
        await there.hang_up()
        there, _ = await site.remote.accept(RESUMED)
        here, _ = await site.local.accept(RESUMED)
        await here.send(publish(b"b", 2))
        assert await there.receive() == publish(b"b", 2), "they went out: not again"
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
