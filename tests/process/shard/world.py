"""A leader of a shard around a replication that is played, with what it says and orders noted."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rumq.cluster.control.records import NodeRecord, View
from rumq.process.shard.leader import Leader
from rumq.process.shard.leader_clients import LeaderClients
from rumq.process.shard.leader_orders import LeaderOrders
from tests.cluster.node.world import record
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
        self.gate: Any = SimpleNamespace(isolated=None)
        self.told: list[tuple[str, dict[str, Any]]] = []
        shard: Any = SimpleNamespace(
            writing=SimpleNamespace(replication=self.replication), pump=self.site.pump,
            cluster=SimpleNamespace(
                fd_passing=SimpleNamespace(flush_within=lambda seconds: self.said.append("doors flushed"))
            ),
            events=SimpleNamespace(tell=lambda name, **fields: self.told.append((name, fields))),
            clients=SimpleNamespace(logins=SimpleNamespace(gate=self.gate)),
            timers=SimpleNamespace(later=lambda seconds, call: self.later.append((seconds, call))),
        )  # fmt: skip
        members: Any = SimpleNamespace(
            wanted=[], begin=lambda members, done: self.orders.append(("members", members, done)),
            claimed=lambda message: self.orders.append(("claimed", message)),
        )  # fmt: skip
        self.departed: list[Any] = []
        self.hold: Any = SimpleNamespace(
            is_holding=False, depart=lambda shard, epoch, give: self.departed.append(give) or 3
        )
        view = View(
            cluster="c", node="n1#1", replicas=3, nodes=[node("n1#1"), node("n2#2", moves=True), node("n3#3")],
            shards=[], is_current=True,
        )  # fmt: skip
        agent: Any = SimpleNamespace(say=self.said.append, flush=lambda: self.said.append("flushed"), view=view)
        nothing: Any = None
        self.clients = LeaderClients(shard, place, lambda: view, self.hold, nothing, nothing)
        self.leader_orders = LeaderOrders(
            place.index, shard, self.replication.succession, members, self.clients.maybe_hold
        )
        self.leader._shard, self.leader._members, self.leader._agent = shard, members, agent
        self.leader._clients, self.leader._orders = self.clients, self.leader_orders
