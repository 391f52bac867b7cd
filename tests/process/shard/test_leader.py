"""A shard's process while it leads: orders, hand-overs and what it reports, around a replication that is played."""

from pathlib import Path

import pytest

from rumq.cluster.control.agent_messages import Claimed, Order, OrderResult, Report
from rumq.process.shard import leader as of_leader
from rumq.supervision.supervisor import DEPOSED
from tests.process.shard.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_orders_of_the_agent_reach_who_carries_them_out(world: World) -> None:
    world.leader._hear(Order(1, "members", 2, members=["n1#1"]))
    [(what, members, done)] = world.orders
    assert (what, members) == ("members", ["n1#1"])
    done("")
    assert world.said == [OrderResult(1, "")]
    world.leader._hear(Claimed(9, True, True, None))
    assert world.orders[-1] == ("claimed", Claimed(9, True, True, None))


def test_a_hand_over_is_answered_when_the_leader_ends_or_has_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(of_leader.os, "_exit", ended.append)
    world.leader._hear(Order(1, "hand-over", 2, to="n2#2"))
    world.leader._hear(Order(2, "hand-over", 2, to="n3#3"))
    [(_, first, _), (_, second, failed)] = world.orders
    assert (first, second) == ("n2#2", "n3#3") and world.said == []
    failed("the shard is handed over to n2#2")
    assert world.said == [OrderResult(2, "the shard is handed over to n2#2")]
    world.leader._end()
    assert world.said[1:] == [OrderResult(1), "flushed", "doors flushed"] and ended == [DEPOSED]
    assert world.told == [("cluster.clients_moved", {"shard": 2, "clients": 0, "dismissed": 0})]


def test_clients_go_along_to_a_node_that_knows_how_to_go_on_with_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_leader.os, "_exit", lambda status: None)
    assert world.clients.maybe_hold("n3#3") is None and world.clients.maybe_hold("n1#1") is None
    assert world.clients.maybe_hold("n2#2") is world.hold
    world.leader._hear(Order(1, "hand-over", 2, to="n2#2"))
    world.hold.is_holding = True
    world.leader._end()
    assert world.departed == [world.clients._give]
    assert world.told == [("cluster.clients_moved", {"shard": 2, "clients": 3, "dismissed": 0})]


def test_a_node_that_stops_keeps_no_clients_at_its_edge(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_leader.os, "_exit", lambda status: None)
    world.behind = {"n2#2": 0}
    assert world.leader.hand_over()
    world.hold.is_holding = True
    world.leader._end()
    assert world.departed == [None]


def test_before_a_stop_the_follower_that_lacks_least_is_to_lead(world: World) -> None:
    world.behind = {"n2#2": None, "n3#3": None}
    assert world.leader.successor() is None and not world.leader.hand_over()
    world.behind = {"n2#2": 7, "n3#3": 2}
    assert world.leader.successor() == "n3#3"
    world.behind = {"n2#2": 7, "n3#3": None}
    assert world.leader.hand_over() and world.orders[0][:2] == ("hand-over", "n2#2")


def test_it_reports_what_it_is_each_second(world: World) -> None:
    world.leader._report()
    world.replication.is_open = True
    [(seconds, again)] = world.later
    again()
    assert seconds == 1.0
    assert [(each.shard, each.role, each.epoch) for each in world.said if isinstance(each, Report)] == [
        (2, "opening", 4),
        (2, "leader", 4),
    ]
    assert world.said[0].figures["changing"] == []
