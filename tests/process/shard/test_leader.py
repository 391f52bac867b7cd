"""A shard's process while it leads: orders, hand-overs and what it reports, around a replication that is played."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.cluster.control.agent_messages import ORDER_BYTES_MAX, Claimed, Order, OrderResult, Report
from rumq.cluster.control.records import NodeRecord, View
from rumq.cluster.links.greeting import Greeting
from rumq.net.frames import PREFIX, MessageReader, encoded
from rumq.process.shard import leader as of_leader
from rumq.process.shard.leader import Leader
from rumq.supervision.supervisor import DEPOSED
from tests.cluster.node.world import record, tcp_pair
from tests.net.site import Site


def node(name: str, *, moves: bool = False) -> NodeRecord:
    return NodeRecord(
        id=name, host="h", port=1, mqtt=[f"{name[:2]}.example:1883"], zone="", incarnation="1", version="1",
        feature_level=1, has_log=True, clock_us=0, moves=moves,
    )  # fmt: skip


class World:
    """said: to the agent; orders: that reached the replication or the members; behind: what followers lack"""

    def __init__(self, folder: Path) -> None:
        self.said: list[Any] = []
        self.orders: list[tuple[Any, ...]] = []
        self.behind: dict[str, int | None] = {}
        self.later: list[tuple[float, Any]] = []
        core: Any = SimpleNamespace(
            record=record("n1#1", "n2#2", "n3#3", leader="n1#1"), node="n1#1", epoch=4,
            behind=lambda: self.behind,
        )  # fmt: skip
        self.replication: Any = SimpleNamespace(
            core=core, is_open=False, figures=lambda: {"open": False},
            succession=SimpleNamespace(
                hand_over=lambda to, done, clients: self.orders.append(("hand-over", to, done))
            ),
        )  # fmt: skip
        self.site = Site()
        place: Any = SimpleNamespace(index=2, count=3, data=str(folder))
        self.leader = Leader(place, SimpleNamespace(), None)  # type: ignore[arg-type]
        self.told: list[tuple[str, dict[str, Any]]] = []
        shard: Any = SimpleNamespace(
            writing=SimpleNamespace(replication=self.replication), pump=self.site.pump,
            cluster=SimpleNamespace(
                fd_passing=SimpleNamespace(flush_within=lambda seconds: self.said.append("doors flushed"))
            ),
            events=SimpleNamespace(tell=lambda name, **fields: self.told.append((name, fields))),
            timers=SimpleNamespace(later=lambda seconds, call: self.later.append((seconds, call))),
        )  # fmt: skip
        members: Any = SimpleNamespace(
            wanted=[], begin=lambda members, done: self.orders.append(("members", members, done)),
            claimed=lambda message: self.orders.append(("claimed", message)),
        )  # fmt: skip
        self.departed: list[Any] = []
        self.leader._hold = SimpleNamespace(  # type: ignore[assignment]
            is_holding=False, depart=lambda shard, epoch, give: self.departed.append(give) or 3
        )
        view = View(
            cluster="c", node="n1#1", replicas=3, nodes=[node("n1#1"), node("n2#2", moves=True)], shards=[],
            is_current=True,
        )  # fmt: skip
        agent: Any = SimpleNamespace(say=self.said.append, flush=lambda: self.said.append("flushed"), view=view)
        self.leader._shard, self.leader._members, self.leader._agent = shard, members, agent


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


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (Order(1, "hand-over", 0, to="n2#2"), "this is shard 2"),
        (Order(1, "dance", 2), "a leader knows nothing of dance"),
    ],
)
def test_what_is_no_order_for_this_leader_is_answered(world: World, order: Order, why: str) -> None:
    world.leader._hear(order)
    assert world.said == [OrderResult(1, why)] and world.orders == []


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
    assert world.leader._maybe_hold("n3#3") is None and world.leader._maybe_hold("n1#1") is None
    assert world.leader._maybe_hold("n2#2") is world.leader._hold
    world.leader._hear(Order(1, "hand-over", 2, to="n2#2"))
    world.leader._hold.is_holding = True
    world.leader._end()
    assert world.departed == [world.leader._give]
    assert world.told == [("cluster.clients_moved", {"shard": 2, "clients": 3, "dismissed": 0})]


def test_a_node_that_stops_keeps_no_clients_at_its_edge(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_leader.os, "_exit", lambda status: None)
    world.behind = {"n2#2": 0}
    assert world.leader.hand_over()
    world.leader._hold.is_holding = True
    world.leader._end()
    assert world.departed == [None]


def test_orders_come_from_other_nodes_too(world: World) -> None:
    near, far = tcp_pair()
    far.setblocking(False)
    greeting = Greeting("ask", "c", "n3#3", 2, 4)
    rest = encoded(Order(6, "members", 2, members=["n1#1"]))
    caller: Any = SimpleNamespace(sock=far, greeting=greeting, rest=rest)
    world.leader._take_operator(caller)
    [(_, members, done)] = world.orders
    assert members == ["n1#1"]
    done("no")
    world.site.turn()  # what is said goes out at the end of one
    reader: MessageReader[OrderResult] = MessageReader(OrderResult)
    near.settimeout(30)
    assert [message for message, _ in reader.feed(near.recv(1 << 16))] == [OrderResult(6, "no")]
    near.close()


def test_orders_of_other_nodes_are_bounded_in_size_number_and_time(world: World) -> None:
    refused: list[str] = []
    nears = []
    for number in range(of_leader.OPERATORS_MAX + 1):
        near, far = tcp_pair()
        far.setblocking(False)
        nears.append(near)
        if number == of_leader.OPERATORS_MAX:
            far.close()
        caller: Any = SimpleNamespace(
            sock=far, greeting=Greeting("ask", "c", "n3#3", 2, 4), rest=b"", refuse=refused.append
        )
        world.leader._take_operator(caller)
    assert refused == [f"{of_leader.OPERATORS_MAX} orders of other nodes are under way: ask again"]
    assert len(world.leader._operators) == of_leader.OPERATORS_MAX
    nears[0].send(PREFIX.pack(ORDER_BYTES_MAX + 1, 16))
    world.site.until(lambda: len(world.leader._operators) == of_leader.OPERATORS_MAX - 1)
    for seconds, call in world.later:
        assert seconds == of_leader.ASK_SECONDS_MAX
        call()
    assert not world.leader._operators and not world.orders
    for near in nears:
        near.close()


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
