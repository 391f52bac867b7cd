"""Several addresses: which one is tried next, that the first one is gone back to, and what another broker knows."""

from functools import partial
from pathlib import Path

import pytest
import trio

from rumq.bridge import bridge as bridge_module
from rumq.bridge.bridge import BridgeRules, RunningBridge
from rumq.bridge.counts import OUT
from rumq.bridge.pairing import Pairing, PairingFiles
from rumq.bridge.relay import DOUBTFUL
from rumq.bridge.remote_addresses import PREFERRED_SECONDS, RemoteAddresses
from rumq.bridge.side import LOCAL, REMOTE, Side, release_ids
from rumq.bridge.topic_rules import TopicMap, parse_rule
from rumq.client.session.options import ConnectOptions
from rumq.mqtt.packets import Connack, Pubcomp, Publish, Pubrel, Suback, Subscribe
from rumq.mqtt.reasons import Reason
from tests.bridge.site import RESUMED, answer_subscriptions
from tests.client.fake_broker import FakeBroker, Peer, simulated

IDS = 30  # instead of 65,535: all are released in the same way
OPTIONS = ConnectOptions(session_expiry=99, keep_alive=0, topic_alias_maximum=0)


def side(address: str, broker: FakeBroker | None = None, filters: dict[str, int] | None = None) -> Side:
    return Side(REMOTE, (broker or FakeBroker()).open_stream, OPTIONS, filters or {}, address)


def addresses(*names: str, is_round_robin: bool = False) -> RemoteAddresses:
    return RemoteAddresses([side(name) for name in names], is_round_robin=is_round_robin)


def test_all_are_tried_before_a_pause() -> None:
    made = addresses("a", "b", "c")
    tried, pauses = [], []
    for _ in range(6):
        tried.append(made.side.address)
        made.note_failed()
        pauses.append(not made.take_untried())
    assert tried == ["a", "b", "c"] * 2 and pauses == [False, False, True] * 2
    made.note_failed()
    assert made.take_untried() and not made.take_untried(), "what fails here, meanwhile, is followed by a pause"


def test_the_first_one_is_preferred_and_another_one_is_left_for_it() -> None:
    made = addresses("a", "b")
    assert made.maybe_preferred is None
    made.note_failed()
    made.note_opened(5)
    assert made.side.address == "b" and made.maybe_preferred is not None and made.maybe_preferred.address == "a"
    made.note_lost()
    assert made.side.address == "a"


def test_the_first_one_is_looked_for_less_often_after_each_return_that_failed() -> None:
    """One that takes TCP and refuses the rest would end the link that works each minute."""
    made = addresses("a", "b")
    made.note_failed()
    seconds = []
    for _ in range(8):
        made.note_used()
        seconds.append(made.look_seconds)
        made.note_returned()
        made.note_lost()
        made.note_failed()
    assert seconds == [60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0, 3600.0]
    made.note_used()
    made.note_lost()
    made.note_failed()
    assert made.look_seconds == 3600.0, "that was no return"
    made.note_returned()
    made.note_lost()
    made.note_used()
    assert made.look_seconds == PREFERRED_SECONDS


def test_where_all_are_equal_the_next_one_has_its_turn() -> None:
    made = addresses("a", "b", is_round_robin=True)
    made.note_opened(5)
    made.note_lost()
    assert made.side.address == "b" and made.maybe_preferred is None
    made.note_lost()
    assert made.side.address == "a"


def test_of_one_address_nothing_is_better() -> None:
    made = addresses("a")
    made.note_failed()
    assert made.side.address == "a" and not made.take_untried() and made.maybe_preferred is None


def test_a_broker_that_took_mqtt_5_once_is_known_to() -> None:
    """Also from the last process, if it is a rumq: that is what ids are told apart from addresses for."""
    made = addresses("a", "b")
    assert not made.side.takes_5
    made.note_opened(4)
    assert not made.side.takes_5
    made.note_opened(5)
    assert made.side.takes_5
    made.note_failed()
    assert not made.side.takes_5
    for remote, takes_5 in (("", False), ("a", False), ("0123abcd", True)):
        made = addresses("a", "b")
        made.note_paired_before(remote)
        assert made.side.takes_5 is takes_5


class TwoRemotes:
    """A broker here, two elsewhere, and a bridge of both addresses. said: its events"""

    def __init__(self, folder: Path, filters: dict[str, int] | None = None) -> None:
        self.local, self.first, self.second = FakeBroker(), FakeBroker(), FakeBroker()
        self.said: list[str] = []
        rules = (parse_rule("up/# out 2"),)
        self.bridge = RunningBridge(
            BridgeRules("b", rules),
            Side(LOCAL, self.local.open_stream, OPTIONS, TopicMap(rules, OUT).subscriptions()),
            RemoteAddresses([side("first", self.first, filters), side("second", self.second, filters)]),
            Pairing(PairingFiles(folder), "b"), lambda event, **_: self.said.append(event), lambda: 0,
        )  # fmt: skip

    async def begun(
        self, broker: FakeBroker, connack: Connack = RESUMED, *, failed_before: bool = False
    ) -> tuple[Peer, Peer]:
        """Subscribed at one of the two, and connected. failed_before: so far none has been connected, but one tried"""
        peer, _ = await broker.accept(connack)
        await answer_subscriptions(peer)
        return await self.connected(broker, failed_before=failed_before)

    async def connected(self, broker: FakeBroker, *, failed_before: bool = False) -> tuple[Peer, Peer]:
        there, _ = await broker.accept(RESUMED)
        if failed_before:
            peer, _ = await self.local.accept(RESUMED)
            await answer_subscriptions(peer)
        here, _ = await self.local.accept(RESUMED)
        return here, there


async def release_all(peer: Peer) -> None:
    released = set()
    while len(released) < IDS:
        packet = await peer.receive()
        assert isinstance(packet, Pubrel)
        released.add(packet.packet_id)
        await peer.send(Pubcomp(packet.packet_id))


@simulated
async def test_another_broker_gets_what_is_on_its_way_marked_and_ids_are_free_at_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session there is of another time: an id that it still holds would swallow a new message."""
    monkeypatch.setattr(bridge_module, "release_ids", partial(release_ids, packet_ids=range(1, IDS + 1)))
    site = TwoRemotes(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge.run)
        peer, _ = await site.local.accept(RESUMED)
        await answer_subscriptions(peer)
        here, there = await site.begun(site.first)
        await here.send(Publish("up/1", b"x", 2, packet_id=1))
        await there.receive()
        site.first.is_up = False
        await there.hang_up()
        here, there = await site.begun(site.second)
        async with trio.open_nursery() as both:
            both.start_soon(release_all, here)
            both.start_soon(release_all, there)
        await here.send(Publish("up/1", b"x", 2, dup=True, packet_id=1))
        message = await there.receive()
        assert isinstance(message, Publish) and (DOUBTFUL, "1") in message.properties["user_properties"]
        # Back at the first one, which is looked for.
        begun = trio.current_time()
        site.first.is_up = True
        assert await here.gone()
        assert PREFERRED_SECONDS <= trio.current_time() - begun <= PREFERRED_SECONDS + 1
        probe = await site.first._arrived.receive()
        assert await probe.gone(), "a look says nothing"
        here, there = await site.connected(site.first)
        async with trio.open_nursery() as both:
            both.start_soon(release_all, here)
            both.start_soon(release_all, there)
        await here.send(Publish("up/1", b"y", 2, packet_id=1))
        assert await there.receive() == Publish("up/1", b"y", 2, packet_id=1)
        assert site.said.count("bridge.doubtful") == 4
        nursery.cancel_scope.cancel()


@simulated
async def test_an_address_where_the_subscription_is_refused_or_not_answered_is_followed_by_the_next_one(
    tmp_path: Path,
) -> None:
    """It takes CONNECT, as a broker that is full or stuck does; between two rounds there is a pause all the same."""
    site = TwoRemotes(tmp_path, {"down/#": 1})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge.run)
        peer, _ = await site.local.accept(RESUMED)
        await answer_subscriptions(peer)
        for _ in range(20):
            for broker in (site.first, site.second):
                peer, _ = await broker.accept(RESUMED)
                packet = await peer.receive()
                assert isinstance(packet, Subscribe)
                if broker is site.first:
                    await peer.send(Suback(packet.packet_id, (Reason.QUOTA_EXCEEDED,) * len(packet.filters)))
        assert trio.current_time() > 20 * OPTIONS.connect_seconds_max + 100, "nobody is asked without a pause"
        assert site.said == ["bridge.lost"]
        nursery.cancel_scope.cancel()


@simulated
async def test_a_first_address_that_takes_only_tcp_costs_a_link_that_works_less_and_less(tmp_path: Path) -> None:
    site = TwoRemotes(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.bridge.run)
        peer, _ = await site.local.accept(RESUMED)
        await answer_subscriptions(peer)
        peer, _ = await site.first.accept(Connack(False, Reason.SERVER_BUSY))
        here, _ = await site.begun(site.second, failed_before=True)
        for looks in (1, 2, 4):
            begun = trio.current_time()
            assert await here.gone()
            assert round(trio.current_time() - begun) == looks * PREFERRED_SECONDS
            await site.first.arrived()
            await site.first.accept(Connack(False, Reason.SERVER_BUSY))
            here, _ = await site.connected(site.second)
        nursery.cancel_scope.cancel()
