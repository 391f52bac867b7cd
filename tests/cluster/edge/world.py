"""An edge with real sockets and leaders on other "nodes", in the thread of the test: each has a pump of its own.

A leader echoes what comes, or serves as a test says. Time is the test's."""

import socket
from functools import partial
from types import SimpleNamespace
from typing import Any

from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.control.agent_messages import Here
from rumq.cluster.control.records import NodeRecord, ShardRecord, Versioned, View
from rumq.cluster.edge.assembly import EdgePlatform, build_edge
from rumq.net.client_placement import home_of
from rumq.net.connection import Connection
from rumq.net.listening.listener import Acceptor, open_sockets
from rumq.net.listening.transports import ConnectionSetup, Transports, continue_handed_over
from rumq.net.sockets.fd_passing import FdPassing, make_shard_sockets
from rumq.net.transport.transport_handshake import TransportHandshakes
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import OPEN, ListenerPolicy
from rumq.shards.links.cluster_listener import Caller, ClusterListener, Expected
from tests.conformance import wire
from tests.net.site import Echo, Site

CLUSTER, HERE, THERE = "c1", "n1#aaaaaaaa", "n2#bbbbbbbb"
COUNT = 2
TURNS_MAX = 3000
HOMES = [[f"c{n}" for n in range(99) if home_of(f"c{n}", COUNT) == shard] for shard in range(COUNT)]
NAMES = [names[0] for names in HOMES]
LIMITS = Limits(connect_seconds_max=5)


def connect_of(shard: int, number: int = 0, **more: Any) -> bytes:
    """CONNECT of a client whose home is a shard."""
    return wire.connect(HOMES[shard][number], **more)


class Leader:
    """The leader of a shard on another node."""

    def __init__(self, shard: int, epoch: int = 1, link: Any = Echo, tls: NodeTls | None = None) -> None:
        self.shard, self.epoch, self.site = shard, epoch, Site(link=link)
        self.sock = open_sockets("127.0.0.1", 0, 100)[0]
        self.events: list[tuple[str, dict[str, Any]]] = []
        ports: Any = SimpleNamespace(
            later=self.site.later, tell=lambda name, **fields: self.events.append((name, fields))
        )
        self.greeted: list[Caller] = []
        self.listener = ClusterListener(
            self.sock,
            self.site.pump,
            Expected(CLUSTER, shard, lambda: range(epoch, self.epoch + 1)),
            {"client": self.take},
            ports,
            ports,
            tls,
        )

    def take(self, caller: Caller) -> None:
        self.greeted.append(caller)
        caller.answer_taken()
        greeting = caller.greeting
        continue_handed_over(
            self.site.pump, greeting.handover, caller.sock, greeting.peer, caller.raw + caller.rest, 1 << 20,
            self.site.welcome,
        )  # fmt: skip

    @property
    def links(self) -> list[Any]:
        return self.site.links

    @property
    def node_port(self) -> int:
        """Of its node: shard i listens behind it."""
        return int(self.sock.getsockname()[1]) - 1 - self.shard

    def die(self) -> None:
        self.listener.close()
        self.sock.close()
        self.site.end()


class World:
    """An edge; leaders: by shard, those on the other node"""

    def __init__(self, policies: tuple[ListenerPolicy, ...] = (OPEN,), tls: NodeTls | None = None) -> None:
        self.tls = tls
        self.now = 1000.0
        self.doors = make_shard_sockets(COUNT + 1)
        self.local = [FdPassing(self.doors, index, lambda seconds, call: None) for index in range(COUNT)]
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.edge = build_edge(
            self.doors, policies, LIMITS, "", self.tell, platform=EdgePlatform(lambda: (0, self.now)),
            here=Here("edge", -1, 1), tls=tls,
        )  # fmt: skip
        self.policies = policies
        self.handshakes = TransportHandshakes(
            self.edge.pump, later=self.edge.timers.later, event=self.tell, clock=lambda: self.now
        )
        self.leaders: list[Leader] = []
        self.listeners: list[Acceptor] = []
        self.epochs = [1] * COUNT

    def tell(self, name: str, **fields: Any) -> None:
        self.events.append((name, fields))

    def named(self, name: str) -> list[dict[str, Any]]:
        return [fields for told, fields in self.events if told == name]

    # The cluster

    def leader(self, shard: int = 0, epoch: int = 1, link: Any = Echo) -> Leader:
        self.leaders.append(Leader(shard, epoch, link, self.tls))
        return self.leaders[-1]

    def view(self, led: dict[int, Leader | str | None]) -> View:
        """led: by shard, a leader elsewhere, HERE, or nobody"""
        nodes = [node(HERE, 1)]
        records = []
        for shard in range(COUNT):
            who = led.get(shard)
            name = who if isinstance(who, str) else ""
            if who is not None and not isinstance(who, str):
                name = f"n{5 + shard}#{who.node_port:08x}"
                nodes.append(node(name, who.node_port))
            records.append(
                Versioned(ShardRecord(epoch=self.epochs[shard], leader=name, claim="", replicas=[HERE, THERE]), 1)
            )
        return View(cluster=CLUSTER, node=HERE, replicas=2, nodes=nodes, shards=records, is_current=True)

    def lead(self, led: dict[int, Leader | str | None]) -> None:
        """The edge sees this view."""
        self.edge.seen(self.view(led))

    # Clients

    def listen(self, transports: Transports = Transports(), number: int = 0) -> Any:  # noqa: B008
        setup = ConnectionSetup(
            transports, self.handshakes, self.edge.pump, 1 << 18,
            lambda connection: self.edge.welcome(connection, self.policies[number]),
        )  # fmt: skip
        self.listeners.append(
            Acceptor(
                open_sockets("127.0.0.1", 0, 100)[0], setup, connections_max=1000, event=self.tell,
                later=self.edge.timers.later,
            )
        )  # fmt: skip
        return self.listeners[-1].sock.getsockname()

    def given(self, shard: int) -> list[tuple[str, str, bytes, int]]:
        """(kind, peer, data, listener) of connections that wait at a shard's door on this node; they are closed."""
        found: list[tuple[str, str, bytes, int]] = []

        def take(kind: str, sock: socket.socket, peer: str, data: bytes, listener: int) -> None:
            sock.close()
            found.append((kind, peer, data, listener))

        for kind in ("client", "known"):
            self.local[shard].takers[kind] = partial(take, kind)
        self.local[shard].hear()
        return found

    # Turns

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.edge.pump.turn(0.0)
            for leader in self.leaders:
                leader.site.pump.turn(0.001)

    def until(self, is_so: Any) -> Any:
        for _ in range(TURNS_MAX):
            if found := is_so():
                return found
            self.turn()
        raise AssertionError(f"it never came; told: {self.events}")

    def wait(self, seconds: float) -> None:
        """Time goes by, a tenth of a second a turn."""
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.turn()

    def end(self) -> None:
        for listener in self.listeners:
            listener.close()
        self.edge.pump.close()
        for leader in self.leaders:
            if leader.sock.fileno() >= 0:
                leader.die()
        for door in self.doors:
            door.inside.close()
            door.outside.close()


def node(name: str, port: int) -> NodeRecord:
    return NodeRecord(
        id=name, host="127.0.0.1", port=port, mqtt=[], zone="", incarnation="1", version="1", feature_level=1,
        has_log=True, clock_us=0,
    )  # fmt: skip


class Silent(Echo):
    """A session that answers nothing."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.is_silent = True
