"""A cluster of one shard in simulated time: nodes, their disks and processes, paths between them, a control plane and
publishers. One seed makes one run, the same each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication.messages import Members, ReplicaMessage
from rumq.cluster.replication.quorum import maybe_members, newest
from tests.cluster.simulation.control import ControlPlane
from tests.cluster.simulation.disk import PARTITIONS, Disk
from tests.cluster.simulation.leader import Leader
from tests.cluster.simulation.ledger import Ledger, Wrong
from tests.cluster.simulation.network import Link
from tests.cluster.simulation.process import Node, Process
from tests.cluster.simulation.standby import Standby

if TYPE_CHECKING:
    from tests.cluster.simulation.faults import Faults

CHECK_SECONDS = 0.5


class Build(NamedTuple):
    """voters, spares: nodes; writes_early: leaders write before their term is open

    publish_seconds: between two messages; feed_seconds: between two blocks of what a follower lacks
    packs: each copy packs its finished segments, for itself"""

    voters: int = 3
    spares: int = 1
    writes_early: bool = True
    publish_seconds: float = 0.02
    feed_seconds: float = 0.0
    packs: bool = False


class World:
    def __init__(self, seed: int, build: Build, say: Callable[[str], None] | None = None) -> None:
        self.seed, self.build, self._say = seed, build, say
        self.random = Random(seed)
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._salts = 0
        self._events = self._claims = self.segments = self._links = self.published = 0
        self.count: Counter[str] = Counter()
        self.blocked: set[tuple[str, str]] = set()
        self.links: dict[int, Link] = {}
        self.slow_links = 0.0
        self.faults: Faults | None = None
        names = [f"n{number}#0" for number in range(build.voters + build.spares)]
        self.nodes = {name: Node(name, Disk(self.random)) for name in names}
        self.wanted = names[: build.voters]
        record = ShardRecord(epoch=0, leader="", claim="", replicas=list(self.wanted))
        self.control = ControlPlane(self, record, names)
        self.ledger = Ledger({name: node.disk for name, node in self.nodes.items()})
        self.last_ack = 0.0
        self.publishes = True
        for name in names:
            self.start(self.nodes[name])
        self.control.list_all()
        self.at(0.0, self._publish)
        self.at(CHECK_SECONDS, self._check)

    # Time

    def at(self, when: float, call: Callable[..., None], *args: object) -> None:
        self._events += 1
        heappush(self._heap, (when, self._events, call, args))

    def run(self, until: float, done: Callable[[], bool] | None = None) -> bool:
        """done: ends it earlier. returns: whether it was done"""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, call, args = heappop(heap)
            call(*args)
            if done is not None and done():
                return True
        self.now = until
        return False

    @property
    def events(self) -> int:
        return self._events

    def tell(self, what: str) -> None:
        if self._say is not None:
            self._say(f"{self.now:9.4f}  {what}")

    def unique(self) -> str:
        self._claims += 1
        return f"claim{self._claims}"

    def salt(self) -> int:
        """Of a segment's file."""
        self._salts += 1
        return self._salts

    def latency(self) -> float:
        return self.random.uniform(0.0002, 0.001) + (self.random.uniform(0, self.slow_links) if self.slow_links else 0)

    # Processes

    def start(self, node: Node) -> None:
        if node.process is not None or not node.is_up:
            return
        node.runs += 1
        process = Process(self, node)
        try:
            process.role = Standby(process)
        except OSError:
            self.at(self.now + 0.5, self.start, node)
            return
        node.process = process
        agent = self.control.agents[node.name]
        process.viewed(agent.view, self.control.is_current(node.name), agent.is_back)

    def kill(self, node: Node, *, power: bool, away: float | None = None) -> None:
        """The process ends; with the node's power its un-synced data may go."""
        if node.process is not None:
            self.count["power cuts" if power else "kills"] += 1
            self.tell(f"{node.name} {'loses its power' if power else 'is killed'}")
        if power:
            node.is_up = False
        if node.process is not None:
            process, node.process = node.process, None
            process.stop()
        node.disk.spent = 0.0
        node.disk.trap = ""
        if power:
            node.disk.lose_power()
            self.at(self.now + (away if away is not None else self.random.uniform(0.1, 1.5)), self.power_on, node)
        else:
            seconds = away if away is not None else self.random.choice((0.01, 0.05, 0.3))
            self.at(self.now + seconds, self.start, node)

    def power_on(self, node: Node) -> None:
        if not node.is_up:
            node.is_up = True
            self.start(node)

    def link(self, dialer: Process, acceptor: Process) -> Link:
        self._links += 1
        link = Link(self, self._links, dialer, acceptor)
        self.links[self._links] = link
        return link

    def deposed(self, process: Process, why: str) -> None:
        self.tell(f"{process.node.name} is deposed: {why}")
        self.count["deposed"] += 1
        wait = self.random.choice((0.0, 0.0, 0.01, 0.3))  # some linger, and go on sending
        self.at(self.now + wait, self._end_process, process)

    def _end_process(self, process: Process) -> None:
        if process.is_alive:
            self.kill(process.node, power=False, away=0.01)

    # What drivers report

    def said(self, node: Node, message: ReplicaMessage) -> None:
        if self._say is not None:
            self.tell(f"{node.name} says {message}")
        if self.faults is not None:
            self.faults.said(node, message)

    def moment(self, name: str, node: Node) -> None:
        if self.faults is not None:
            self.faults.moment(name, node)

    def swapped(self, process: Process, record: ShardRecord, was: ShardRecord, was_restored: bool) -> None:
        """was: the record in whose place it is; was_restored: revisions may have been given out twice"""
        self.count["claims won"] += 1
        if not was_restored and (record.epoch, record.config) < (was.epoch, was.config):
            raise Wrong(f"{process.node.name} has replaced {was} by the older {record}")
        self.tell(f"{process.node.name} writes {record}")
        self.moment("claimed", process.node)

    def settled(self, record: ShardRecord) -> None:
        self.count["members changed"] += 1

    def took_office(self, node: Node, epoch: int) -> None:
        self.count["leaders"] += 1
        self.tell(f"{node.name} takes office in epoch {epoch}")
        self.ledger.took_office(node.name, epoch)

    def opened_term(self, node: Node, epoch: int, record: ShardRecord) -> None:
        self.count["terms open"] += 1
        self.tell(f"{node.name} opens epoch {epoch}")
        self.ledger.opened(node.name, epoch)

    def committed(self, node: Node, epoch: int, partition: str, lsn: int) -> None:
        self.ledger.committed(node.name, epoch, partition, lsn)

    def acknowledged(self, partition: str, lsn: int, value: int, record: ShardRecord) -> None:
        self.last_ack = self.now
        self.ledger.acked(partition, lsn, value, record)

    def wrote(self, partition: str, lsn: int, value: int, epoch: int) -> None:
        self.count["written"] += 1
        self.moment("wrote", self.nodes[self.control.stored.record.leader or "n0#0"])

    def trimmed(self, partition: str, first: int) -> None:
        self.count["trims"] += 1
        self.ledger.trimmed(partition, first)

    def alarmed(self, node: Node, alarm: fx.Alarm) -> None:
        self.count[alarm.name] += 1
        self.tell(f"{node.name}: {alarm.name}, {alarm.why}")
        if alarm.name == "cluster.copy_doubted" and (node.disk.was_harmed or node.disk.begins_anew):
            return
        if alarm.name == "cluster.copy_anew":
            return
        harmed = any(each.disk.was_harmed for each in self.nodes.values())
        if alarm.name == "cluster.copies_disagree" and harmed and "may lack" in alarm.why:
            return  # one is doubted, and others are away
        if alarm.name == "cluster.epoch_back" and self.count["etcd_restored"]:
            return
        raise Wrong(f"{node.name}: {alarm.name}, {alarm.why}")

    # Publishers

    @property
    def leaders(self) -> list[Leader]:
        found: list[Leader] = []
        for node in self.nodes.values():
            process = node.process
            if process is not None and isinstance(process.role, Leader):
                found.append(process.role)
        return found

    def _publish(self) -> None:
        """To some process that leads, or believes that it does."""
        if self.publishes:
            leaders = [each for each in self.leaders if each.takes and not each.core.is_deposed]
            if leaders:
                self.published += 1
                leader = self.random.choice(leaders)
                process = leader.process
                process.take(leader.publish, self.random.choice(PARTITIONS), self.published)
        self.at(self.now + self.random.expovariate(1 / self.build.publish_seconds), self._publish)

    def voters(self) -> Members:
        """Who decides now: as replicas have noted it, for the record may have been restored to an older one."""
        noted = [maybe_members(node.disk.note.voters) for node in self.nodes.values()]
        return newest(self.control.stored.record, noted)

    def _check(self) -> None:
        self.ledger.check_disks()
        self.ledger.check_kept(self.voters())
        self.at(self.now + CHECK_SECONDS, self._check)
