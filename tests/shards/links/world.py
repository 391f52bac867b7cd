"""Leaders of a cluster's shards with the links between them, each with a pump of its own, in the thread of the test."""

import socket
from types import SimpleNamespace
from typing import Any

from rumq.admin.socket.admin_socket import Answerer
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.control.records import NodeRecord, ShardRecord, Versioned, View
from rumq.cluster.links.greeting import Greeting
from rumq.net.connection import Connection
from rumq.net.frames import encoded
from rumq.net.listening.listener import open_sockets
from rumq.shards.links.admin_callers import AdminCallers
from rumq.shards.links.cluster_links import ClusterLinks
from rumq.shards.links.cluster_listener import Caller, ClusterListener, Expected
from rumq.shards.links.relay_callers import RelayCallers
from tests.net.site import Echo, Site

CLUSTER = "c1"
TURNS_MAX = 2000


class Leader:
    """index, epoch: of its shard; made: links by shard, those that are attached; left: shards whose link was ended
    answer: to questions of operators"""

    def __init__(self, index: int, epoch: int = 1, tls: NodeTls | None = None, greetings_max: int = 1024) -> None:
        self.index, self.epoch = index, epoch
        self.site = Site()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.ports: Any = SimpleNamespace(
            later=self.site.later, tell=lambda name, **fields: self.events.append((name, fields))
        )
        self.sock = open_sockets("127.0.0.1", 0, 100)[0]
        self.made: dict[int, Connection] = {}
        self.left: list[int] = []
        self.callers: list[Caller] = []
        self.links = ClusterLinks(
            index, lambda: self.epoch, HostAddresses(), lambda: self.site.pump, self.ports, self.ports, tls
        )
        self.links.begin(self._attach, self._leave)
        self.answer: Answerer = lambda question: {"shard": index, **question}
        self.failures: list[str] = []
        self.admin = AdminCallers(
            self.site.pump,
            lambda question: self.answer(question),
            lambda: self.epoch,
            self.ports,
            self.failures.append,
        )
        self.relays = RelayCallers(self.site.pump, HostAddresses(), self.ports, lambda: self.links.view, tls)
        takers = {
            "bus": self.links.take, "ask": self.callers.append, "fails": self._fail, "admin": self.admin.take,
            "relay": self.relays.take,
        }  # fmt: skip
        self.listener = ClusterListener(
            self.sock, self.site.pump, Expected(CLUSTER, index, lambda: range(epoch, self.epoch + 1)), takers,
            self.ports, self.ports, tls, greetings_max,
        )  # fmt: skip

    def _attach(self, shard: int, sock: socket.socket, rest: bytes) -> None:
        self.made[shard] = connection = Connection(self.site.pump, sock, f"shard {shard}", 1 << 20)
        connection.link = Echo(connection)
        connection.link.is_silent = True
        self.site.pump.add(connection)
        if rest:
            self.site.pump.feed(connection, rest)

    def _leave(self, shard: int) -> None:
        self.left.append(shard)
        self.made.pop(shard).close()
        if shard < self.index:
            self.links.dial(shard)  # as `Peers` does

    def _fail(self, caller: Caller) -> None:
        raise RuntimeError("a bug")

    @property
    def address(self) -> tuple[str, int]:
        found: tuple[str, int] = self.sock.getsockname()
        return found

    def got(self, shard: int) -> bytes:
        return bytes(self.made[shard].link.got)

    def end(self) -> None:
        self.listener.close()
        self.sock.close()
        self.site.end()


class World:
    def __init__(self) -> None:
        self.tls: NodeTls | None = None
        self.leaders: list[Leader] = []
        self.sockets: list[socket.socket] = []

    def leader(self, index: int, epoch: int = 1, greetings_max: int = 1024) -> Leader:
        self.leaders.append(Leader(index, epoch, self.tls, greetings_max))
        return self.leaders[-1]

    def see(self, *led: Leader | None, epochs: tuple[int, ...] = ()) -> None:
        """Every leader sees who leads shard 0, 1, ..."""
        nodes, records = [], []
        for shard, who in enumerate(led):
            name = "" if who is None else f"n{shard}#{who.address[1]:08x}"
            if who is not None:
                nodes.append(node(name, who.address[1] - 1 - shard))
            epoch = epochs[shard] if epochs else who.epoch if who is not None else 1
            records.append(Versioned(ShardRecord(epoch=epoch, leader=name, claim="", replicas=[name]), 1))
        for leader in self.leaders:
            own = f"n{leader.index}#{leader.address[1]:08x}"
            leader.links.view_changed(
                View(cluster=CLUSTER, node=own, replicas=1, nodes=nodes, shards=records, is_current=True)
            )

    def client(self, leader: Leader) -> socket.socket:
        """A connection to a leader's port."""
        self.sockets.append(socket.create_connection(leader.address))
        self.sockets[-1].setblocking(False)
        return self.sockets[-1]

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            for leader in self.leaders:
                leader.site.pump.turn(0.001)

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            for leader in self.leaders:
                leader.site.now += 0.1
            self.turn()

    def until(self, is_so: Any) -> Any:
        for _ in range(TURNS_MAX):
            if found := is_so():
                return found
            self.turn()
        raise AssertionError(f"it never came; told: {[leader.events for leader in self.leaders]}")

    def end(self) -> None:
        for leader in self.leaders:
            if leader.sock.fileno() >= 0:
                leader.end()
        for sock in self.sockets:
            sock.close()


def node(name: str, port: int) -> NodeRecord:
    return NodeRecord(
        id=name, host="127.0.0.1", port=port, mqtt=[], zone="", incarnation="1", version="1", feature_level=1,
        has_log=True, clock_us=0,
    )  # fmt: skip


def greeting(kind: str = "ask", shard: int = 0, **more: Any) -> bytes:
    return encoded(Greeting(kind, more.pop("cluster", CLUSTER), "n9#99999999", shard, **{"epoch": 1, **more}))
