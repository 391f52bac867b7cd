"""A whole shard that leads: what its clients see of replication."""

from collections.abc import Callable
from typing import Any

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.cluster.control.records import NodeRecord, ShardRecord, Versioned, View
from rumq.shards.replication.follower_link import OUTBOX_BYTES_MAX, ReplicaLink
from rumq.shards.replication.term import Term
from tests.conformance import wire
from tests.conformance.wire import Kind
from tests.faults.shard import Client, Shard
from tests.shards.replication.world import Follower, Wire


class Leader(Shard):
    """Its followers take part whenever the shard settles, but those that are stuck."""

    def __init__(self, *names: str) -> None:
        self.followers = {name: Follower(name) for name in names}
        self.stuck: set[str] = set()
        self.wires: dict[str, tuple[Wire, ReplicaLink]] = {}
        self.ended = 0
        record = ShardRecord(epoch=1, leader="n0", claim="c", replicas=["n0", *names])
        nodes = [
            NodeRecord(
                id=name, host=name, port=1, mqtt=[], zone="", incarnation="", version="", feature_level=1,
                has_log=True, clock_us=0,
            )
            for name in names
        ]  # fmt: skip
        view = View(cluster="c", node="n0", replicas=3, nodes=nodes, shards=[Versioned(record, 1)], is_current=True)
        term = Term("c", 0, "n0", 1, record, view, end=self._end)
        super().__init__(SimulatedFiles(), term=term, connect=lambda pump: self._connect, durability="quorum")
        assert self.parts.writing.replication is not None
        assert not self.parts.operation.startup.advance(), "nobody is served before the term is open"
        self.parts.writing.replication.begin()
        self.settle()
        assert self.parts.operation.startup.advance()
        self.settle()

    def _end(self) -> None:
        self.ended += 1

    def _connect(self, address: tuple[str, int], peer: str, link_of: Callable[[Any], ReplicaLink]) -> None:
        self.followers[peer].dialled()
        to = Wire(peer)
        self.wires[peer] = (to, link_of(to))

    def settle(self) -> None:
        while True:
            super().settle()
            carried = [self._carry(peer) for peer in self.wires if peer not in self.stuck]
            if True not in carried:
                return

    def _carry(self, peer: str) -> bool:
        to, link = self.wires[peer]
        data, to.outbox, to.room = b"".join(to.outbox), [], OUTBOX_BYTES_MAX
        self.followers[peer].receive(data)
        answers = self.followers[peer].answers()
        link.receive(answers, 0, len(answers))
        return bool(data or answers)


def test_a_puback_leaves_once_a_majority_has_the_message() -> None:
    leader = Leader("n1", "n2")
    client = Client(leader, "pump", 5)
    leader.stuck = {"n1", "n2"}
    client.say(wire.publish("t", b"1", 1, 1))
    assert client.take() == []
    leader.stuck = {"n2"}
    leader.settle()
    assert [packet.kind for packet in client.take()] == [Kind.PUBACK]
    leader.end()


def test_subscribers_see_only_what_no_change_of_leaders_can_lose() -> None:
    leader = Leader("n1", "n2")
    client, subscriber = Client(leader, "pump", 5), Client(leader, "display", 5)
    subscriber.say(wire.subscribe(1, [("t", 1)]))
    subscriber.take()
    leader.stuck = {"n1", "n2"}
    client.say(wire.publish("t", b"1", 1, 1))
    assert subscriber.take() == []
    leader.stuck = {"n1"}
    leader.settle()
    assert [packet.kind for packet in subscriber.take()] == [Kind.PUBLISH]
    leader.end()
