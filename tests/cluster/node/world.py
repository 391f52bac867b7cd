"""A standby in the test's own thread, between an agent and a leader that do what the test says, over real sockets."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from commitlog import OpenOptions, RealFiles, StoreLayout, StreamSpec, open_store
from commitlog.replica.replica_state import load_state
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.cluster.control.agent_messages import AgentMessage
from rumq.cluster.control.records import NodeRecord, ShardRecord, Versioned, View
from rumq.cluster.links.greeting import Greeting
from rumq.cluster.node.frame_link import FrameLink
from rumq.cluster.node.link_handshake import LinkTls
from rumq.cluster.node.log_copies import CopyId, NodeLogCopies
from rumq.cluster.node.standby_process import StandbyContext, StandbyProcess, TakenOffice
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.ports import DataFrame
from rumq.net.frames import MessageReader, encoded
from tests.commitlog.records import DEAD, NOW, append, numbers, write

KEY = "main/g1/p0"
COPIES = [CopyId(KEY, "main", 0)]
SECONDS_MAX = 30.0


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    return near, far


def log(groups: int, epoch: int = 1) -> NodeLogCopies:
    """A leader's partition with so many groups of ten records, as a copy that can be served."""
    files = SimulatedFiles()
    store = open_store(
        files,
        "data",
        StoreLayout([StreamSpec("main", ("#",), 1, "disk")], lambda f, t: True),
        OpenOptions(NOW, random=numbers(epoch), hot_bytes_max=0, direct_bytes_min=1 << 30, epoch=epoch),
        holder=DEAD,
    )
    for _ in range(groups):
        append(store.own[0], [(b"t", b"payload")] * 10)
        write(store.own[0])
    return NodeLogCopies(files.after_kill(), "data", COPIES)


def frames(source: NodeLogCopies, epoch: int = 1) -> list[tuple[m.ReplicaMessage, bytes]]:
    """What a blank copy lacks."""
    served = source.serve(epoch, KEY, [])
    found = [(message, b"".join(map(bytes, raw))) for message, raw in served]
    return [(message, raw) for message, raw in found if isinstance(message, DataFrame)]


def filled(copies: NodeLogCopies, source: NodeLogCopies, epoch: int = 1) -> NodeLogCopies:
    for message, raw in frames(source, epoch):
        assert isinstance(message, DataFrame)
        copies.apply(message, memoryview(raw))
    copies.sync()
    return copies


def node_record(node: str, port: int = 1) -> NodeRecord:
    return NodeRecord(
        id=node, host="127.0.0.1", port=port - 1, mqtt=[], zone="", incarnation="", version="", feature_level=1,
        has_log=False, clock_us=0,
    )  # fmt: skip


class Peer:
    """A connection of another node to a standby. heard: its answers"""

    def __init__(self, port: int, greeting: Any, tls: LinkTls | None = None) -> None:
        self.link = FrameLink(socket.create_connection(("127.0.0.1", port)), tls, is_connecting=True)
        self.heard: list[Any] = []
        self.link.send(greeting)

    def turn(self) -> None:
        self.link.flush()
        if not self.link.closed:
            self.heard += [message for message, _ in self.link.read()]

    def of(self, *kinds: type) -> list[Any]:
        return [each for each in self.heard if isinstance(each, kinds)]


class Agent:
    """The agent of one node, by hand. heard: what the standby has said; answer: of what it hears, at once"""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.setblocking(False)
        self.heard: list[AgentMessage] = []
        self.first: list[AgentMessage] = []  # said to each link that is made
        self.answer: Callable[[AgentMessage], list[AgentMessage]] = lambda message: []
        self._socket: socket.socket | None = None
        self._reader: MessageReader[AgentMessage] = MessageReader(AgentMessage)

    def turn(self) -> None:
        if self._socket is None:
            try:
                self._socket, _ = self._listener.accept()
            except BlockingIOError:
                return
            self._socket.setblocking(False)
            self._reader = MessageReader(AgentMessage)
            for message in self.first:
                self.say(message)
        try:
            data = self._socket.recv(1 << 16)
        except BlockingIOError:
            return
        for message, _ in self._reader.feed(data):
            self.heard.append(message)
            for answer in self.answer(message):
                self.say(answer)

    def say(self, message: AgentMessage) -> None:
        assert self._socket is not None
        self._socket.sendall(encoded(message))

    def hang_up(self) -> None:
        assert self._socket is not None
        self._socket.close()
        self._socket = None

    def close(self) -> None:
        self._listener.close()
        if self._socket is not None:
            self._socket.close()


class Site:
    """One node's disk, agent and standby of shard 0. events: (name, fields)"""

    def __init__(
        self, folder: Path, node: str = "n1#1", source: NodeLogCopies | None = None, tls: LinkTls | None = None
    ) -> None:
        self.data, self.node, self.tls = str(folder), node, tls
        (folder / "_cluster").mkdir(parents=True)
        self.agent = Agent(folder / "agent.sock")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.copies = NodeLogCopies(RealFiles(), self.data, COPIES)
        self.state = load_state(RealFiles(), self.data, 0, node.partition("#")[2], has_log=False)
        if source is not None:
            filled(self.copies, source)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.peers: list[Peer] = []
        standing = StandbyContext(node, 0, str(folder / "agent.sock"), self.listener, tls=tls)
        self.standby = StandbyProcess(
            standing, self.copies, self.state, lambda name, **fields: self.events.append((name, fields))
        )

    def view(self, record: ShardRecord, *others: NodeRecord, revision: int = 1) -> View:
        nodes = [node_record(self.node, self.port), *others]
        return View(
            cluster="c", node=self.node, replicas=3, nodes=nodes, shards=[Versioned(record, revision)],
            is_current=True,
        )  # fmt: skip

    def peer(self, node: str = "n2#2", kind: str = "replica", cluster: str = "c", shard: int = 0, **more: Any) -> Peer:
        peer = Peer(self.port, Greeting(kind, cluster, node, shard, 1, **more), self.tls)
        self.peers.append(peer)
        return peer

    def run(self, story: Iterator[Callable[[], object]]) -> TakenOffice | None:
        """Run the standby. story: yields what must come true before it goes on; the standby is stopped behind it."""
        until = time.monotonic() + SECONDS_MAX
        waits: list[Callable[[], object]] = []

        def is_stopping() -> bool:
            assert time.monotonic() < until, f"it never comes true; {self.events} {self.agent.heard}"
            self.agent.turn()
            for peer in self.peers:
                peer.turn()
            while not waits or waits[0]():
                following = next(story, None)
                if following is None:
                    return True
                waits[:] = [following]
            return False

        return self.standby.run(is_stopping)

    def close(self) -> None:
        self.agent.close()
        self.listener.close()
        for peer in self.peers:
            peer.link.close()


def record(*replicas: str, epoch: int = 1, leader: str = "n2#2", claim: str = "c", **more: Any) -> ShardRecord:
    return ShardRecord(epoch=epoch, leader=leader, claim=claim, replicas=list(replicas), **more)
