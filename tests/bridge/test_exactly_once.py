"""QoS 1 is carried as QoS 2 where both brokers say that they can, and as QoS 1 everywhere else.

docs/decisions/0074-a-bridge-raises-qos-1.md"""

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from rumq.bridge.pairing import Pairing, PairingFiles
from rumq.bridge.relay import DOUBTFUL
from rumq.bridge.side import BROKER_ID, EXACTLY_ONCE, HOLD, REMOTE
from rumq.mqtt.packets import Connack, Connect, Disconnect, Packet, Publish, Subscribe
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.bridge.site import Site, answer_releases, answer_subscriptions, publish
from tests.client.fake_broker import Peer, simulated

OLDER = Connack(True, Reason.SUCCESS, Properties(user_properties=[(BROKER_ID, "R")]))
KNOWS = Connack(True, Reason.SUCCESS, Properties(user_properties=[(BROKER_ID, "R"), (EXACTLY_ONCE, "yes")]))
OTHER = Connack(True)


def asks(connect: Connect) -> bool:
    return (EXACTLY_ONCE, "") in connect.properties.get("user_properties", ())


def is_doubtful(packet: Packet) -> bool:
    return (DOUBTFUL, "1") in packet.properties.get("user_properties", ())  # type: ignore[union-attr]


async def asked(site: Site, local: Connack, remote: Connack) -> tuple[Peer, Peer, list[bool]]:
    """Both connected; and who was asked: local and remote to subscribe, then remote and local."""
    found = []
    for broker, connack in ((site.local, local), (site.remote, remote)):
        peer, connect = await broker.accept(connack)
        found.append(asks(connect))
        await answer_subscriptions(peer)
    there, connect = await site.remote.accept(remote)
    found.append(asks(connect))
    here, connect = await site.local.accept(local)
    return here, there, [*found, asks(connect)]


@simulated
@pytest.mark.parametrize("remote", [OLDER, OTHER], ids=["an older rumq", "another broker"])
async def test_the_local_broker_is_not_asked_where_the_other_one_does_not_know_it(
    tmp_path: Path, remote: Connack
) -> None:
    """Else it would get messages of QoS 2 where its line says 1."""
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        _, _, found = await asked(site, KNOWS, remote)
        assert found == [False, True, True, False]
        await trio.sleep(0.1)
        assert [each["exactly_once"] for each in site.named("bridge.connected")] == [False]
        nursery.cancel_scope.cancel()
    assert not Pairing(PairingFiles(tmp_path), "b").exactly_once


@simulated
async def test_both_are_asked_where_both_know_it(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(site.bridge().run)
            _, _, found = await asked(site, KNOWS, KNOWS)
            assert found == [False, True, True, True]
            await trio.sleep(0.1)
            nursery.cancel_scope.cancel()
    assert [each["exactly_once"] for each in site.named("bridge.connected")] == [True, True]


@simulated
async def test_nobody_is_asked_where_the_settings_say_so(tmp_path: Path) -> None:
    site = Site(tmp_path, exactly_once=False)
    await Pairing(PairingFiles(tmp_path), "b").note_paired("R", exactly_once=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        _, there, found = await asked(site, OLDER, OLDER)
        assert found == [False] * 4
        await there.send(publish(b"a", 1, topic="down/1", qos=1))
        await trio.sleep(0.1)
        assert not site.named("bridge.doubtful"), "the brokers know which messages are in which handshake"
        nursery.cancel_scope.cancel()


@simulated
async def test_a_local_broker_without_qos_2_is_not_asked_again_and_neither_is_the_other_one(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        _, _, found = await asked(site, OTHER, KNOWS)
        assert found[-1]
        _, connect = await site.remote.accept(OLDER)
        assert not asks(connect)
        peer, _ = await site.local.accept(OTHER)
        await answer_subscriptions(peer)
        _, connect = await site.local.accept(OTHER)
        assert not asks(connect)
        await trio.sleep(0.1)
        assert "QoS 2" in site.named("bridge.lost")[0]["why"]
        assert [each["exactly_once"] for each in site.named("bridge.connected")] == [False]
        nursery.cancel_scope.cancel()


@simulated
async def test_behind_a_broker_that_went_back_to_an_older_version_no_id_of_qos_2_is_in_use(tmp_path: Path) -> None:
    """It sends again with QoS 1 what went out with QoS 2, so PUBREL does not come: a later message would be lost."""
    site = Site(tmp_path)
    await Pairing(PairingFiles(tmp_path), "b").note_paired("R", exactly_once=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        for broker, connack in ((site.local, KNOWS), (site.remote, OLDER)):
            peer, _ = await broker.accept(connack)
            await answer_subscriptions(peer)
        there, _ = await site.remote.accept(OLDER)
        here, _ = await site.local.accept(KNOWS)
        nursery.start_soon(answer_releases, here)
        await trio.sleep(1)
        assert site.named("bridge.doubtful") == [{"name": "b", "side": REMOTE}]
        message = Publish("up/1", b"x", 1, dup=True, packet_id=4)
        await here.send(message)
        await there.send(replace(message, topic="down/1"))
        assert not is_doubtful(await there.receive()), "the other way each message is in the handshake that it was in"
        assert is_doubtful(await here.receive()), "what it sends again may be here"
        nursery.cancel_scope.cancel()
    assert not Pairing(PairingFiles(tmp_path), "b").exactly_once


@simulated
async def test_sessions_send_nothing_while_it_subscribes(tmp_path: Path) -> None:
    """What they sent then would come again, with QoS 1. Retained messages wait here until both were connected once."""
    site = Site(tmp_path)
    held, handling = [], []
    for _ in range(3):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(site.bridge().run)
            for broker in (site.local, site.remote):
                peer, connect = await broker.accept(OLDER)
                held.append((HOLD, "") in connect.properties.get("user_properties", ()))
                requests = await answer_subscriptions(peer)
                handling += [each.filters[0].retain_handling for each in requests if isinstance(each, Subscribe)]
            if len(held) > 2:  # the first time it does not come so far
                for broker in (site.remote, site.local):
                    _, connect = await broker.accept(OLDER)
                    assert (HOLD, "") not in connect.properties.get("user_properties", ())
                await trio.sleep(0.1)
            nursery.cancel_scope.cancel()
    assert held == [True] * 6
    assert handling == [0, 1, 0, 1, 1, 1]


@simulated
async def test_a_new_session_that_is_given_up_before_it_is_noted_ends(tmp_path: Path) -> None:
    """Else the next connection would find it there, without filters, and its packet ids would not be released."""
    site = Site(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge().run)
        for broker in (site.local, site.remote):
            peer, _ = await broker.accept(KNOWS)
            await answer_subscriptions(peer)
        await site.remote.accept(KNOWS)
        here, connect = await site.local.accept(Connack(False))
        assert asks(connect)
        left = await here.receive()
        assert isinstance(left, Disconnect) and left.properties["session_expiry_interval"] == 0
        nursery.cancel_scope.cancel()
