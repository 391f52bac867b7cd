"""What goes wrong, by chance and by aim: faults of all kinds at any time, and faults at the instants that decide."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from rumq.cluster.replication.messages import ReplicaMessage
from tests.cluster.simulation.disk import DiskState, last_name

if TYPE_CHECKING:
    from tests.cluster.simulation.process import Node
    from tests.cluster.simulation.world import World

MOMENTS = (
    "claim", "claimed", "lead", "term open", "commit", "wrote", "change asked", "change", "settle", "Promise",
    "Promised", "FetchCopy", "Inventory", "Cut", "Complete", "Opened", "Synced", "Succeed",
)  # fmt: skip
TRAPS = (
    "promise.before", "promise.after", "open.before", "open.after", "apply", "sync.before", "sync.after", "leader sync",
)  # fmt: skip


class Faults:
    """aims: moments at which this run strikes; rate: seconds between faults by chance"""

    def __init__(self, world: World) -> None:
        random = world.random
        self._world, self._random = world, random
        self.is_on = True
        self._rate = random.choice((0.15, 0.4, 0.4, 1.0))
        count = random.choice((0, 0, 1, 2, 3))
        self._aims = {name: random.choice((0.05, 0.2, 0.6)) for name in random.sample(MOMENTS, count)}
        kinds: list[tuple[Callable[[], None], int]] = [
            (self._kill, 6), (self._power, 4), (self._power_all, 1), (self._isolate, 5), (self._one_way, 4),
            (self._halves, 2), (self._cut_link, 5), (self._pause, 5), (self._slow_disk, 3), (self._fail_disk, 1),
            (self._trap, 5), (self._etcd_cut, 3), (self._etcd_silent, 2), (self._etcd_stale, 2),
            (self._slow_links, 3), (self._trim, 5), (self._hand_over, 3), (self._members, 2), (self._stop_long, 2),
            (self._old_leader, 3), (self._damage, 1), (self._vanish, 1), (self._copy_disk, 3),
            (self._old_disk if random.random() < 0.5 else self._etcd_restored, 2),
        ]  # fmt: skip
        chosen = [each for each in kinds if random.random() < 0.7] or kinds
        self._kinds = [kind for kind, _ in chosen]
        self._weights = [weight for _, weight in chosen]
        world.at(random.uniform(0.3, 1.0), self._strike)
        # Drawn apart, so that the other runs are what they were.
        self._volumes = Random(world.seed + 1_000_003)
        if self._volumes.random() < 0.2:
            world.at(self._volumes.uniform(0.5, 3.0), self._unmount)

        self._packs = Random(world.seed + 2_000_003)
        if world.build.packs:
            world.at(self._packs.uniform(0.2, 1.0), self._pack)

    def _pack(self) -> None:
        """Each copy for itself, at any time; to the end, for it is no fault."""
        for node in self._world.nodes.values():
            process = node.process
            if process is not None and process.role is not None and self._packs.random() < 0.5:
                for partition in node.disk.parts:
                    process.take(process.role.pack, partition)
        self._world.at(self._world.now + self._packs.choice((0.02, 0.1, 0.4)), self._pack)

    def _strike(self) -> None:
        if self.is_on:
            kind = self._random.choices(self._kinds, self._weights)[0]
            self._world.count[kind.__name__.strip("_")] += 1
            kind()
            self._world.at(self._world.now + self._random.expovariate(1 / self._rate), self._strike)

    def said(self, node: Node, message: ReplicaMessage) -> None:
        if self._aims:
            self.moment(type(message).__name__, node)

    def moment(self, name: str, node: Node) -> None:
        chance = self._aims.get(name)
        if chance is not None and self.is_on and self._random.random() < chance:
            self._world.count[f"aimed at {name}"] += 1
            delay = self._random.choice((0.0, 0.0, 0.0005, 0.001, 0.002, 0.005))
            self._world.at(self._world.now + delay, self._hit, node)

    def _hit(self, node: Node) -> None:
        if not self.is_on:
            return
        world, random = self._world, self._random
        what = random.randrange(7)
        if what == 0:
            world.kill(node, power=False)
        elif what == 1:
            world.kill(node, power=True)
        elif what == 2:
            self._block_all(node.name)
        elif what == 3:
            others = [name for name in world.nodes if name != node.name]
            kept = random.choice(others)  # it reaches one other, and nobody else
            for name in others:
                if name != kept:
                    self._block(node.name, name)
                    self._block(name, node.name)
        elif what == 4 and node.process is not None:
            node.process.pause(random.uniform(0.2, 3.0))
        elif what == 5:
            self._cut_links_of(node)
        else:
            node.disk.trap = random.choice(TRAPS)

    # Nodes

    def _some(self) -> Node:
        """The leader more often than others."""
        world = self._world
        leader = world.nodes.get(world.control.stored.record.leader)
        if leader is not None and self._random.random() < 0.5:
            return leader
        return self._random.choice(list(world.nodes.values()))

    def _kill(self) -> None:
        self._world.kill(self._some(), power=False)

    def _old_leader(self) -> None:
        """It hears nothing of a newer one: it is cut off but for one follower, which crashes again and again."""
        world, random = self._world, self._random
        leader = world.control.stored.record.leader
        others = [name for name in world.nodes if name != leader]
        if leader not in world.nodes:
            return
        kept = world.nodes[random.choice(others)]
        seconds = random.uniform(1.5, 4.0)
        agent = world.control.agents[leader]
        agent.is_cut = True
        world.at(world.now + seconds, setattr, agent, "is_cut", False)
        for name in others:
            if name != kept.name:
                self._block(leader, name, seconds)
                self._block(name, leader, seconds)
        process = world.nodes[leader].process
        if process is not None and random.random() < 0.7:
            process.pause(random.uniform(0.3, 1.5))
        for _ in range(random.randrange(1, 4)):
            world.at(world.now + random.uniform(0.5, seconds), self._crash, kept)

    def _crash(self, node: Node) -> None:
        if self.is_on:
            self._world.kill(node, power=self._random.random() < 0.5, away=self._random.choice((0.01, 0.1)))

    def _damage(self) -> None:
        """A copy has lost what it had synced, and its process sees that when it starts."""
        world = self._world
        if not self._is_harmed():
            node = self._some()
            world.kill(node, power=True)
            node.disk.damage()

    def _is_harmed(self) -> bool:
        return any(node.disk.is_doubted for node in self._world.nodes.values())

    def _vanish(self) -> None:
        """A second after the last commit, which was noted then."""
        node = self._some()
        if self._is_harmed() or node.process is None:
            return
        partitions = list(node.disk.parts)
        if self._random.random() < 0.5:
            partitions = [self._random.choice(partitions)]
        self._end_noted(node)
        images = [image for image, _ in node.images]
        node.disk.vanish(partitions, self._random.choice([None, *images]))

    def _end_noted(self, node: Node) -> None:
        marks = node.process.role.marks() if node.process is not None and node.process.role is not None else {}
        self._world.kill(node, power=True)
        held = {key: (part.durable.end_lsn, last_name(part)) for key, part in node.disk.parts.items()}
        DiskState(node.disk).note_copies(marks, held)

    def _unmount(self) -> None:
        """Volumes of some nodes, or of all, are away for a while; their processes start without them."""
        world, random = self._world, self._volumes
        nodes = [node for node in world.nodes.values() if node.process is not None]
        if self._is_harmed() or not nodes or not self.is_on:
            return
        for node in random.sample(nodes, random.randint(1, len(nodes))):
            world.count["unmount"] += 1
            self._end_noted(node)
            node.disk.unmount()
            world.at(world.now + random.uniform(0.2, 4.0), self._mount, node)

    def _mount(self, node: Node) -> None:
        """Unless the copy was filled again meanwhile: then the volume holds an old one. If the others can fill it, this
        is an old copy of the volume now and then."""
        volume, node.disk.away = node.disk.away, None
        if volume is None or not node.disk.is_doubted:
            return
        others = [other.disk for other in self._world.nodes.values() if other is not node]
        if node.images and not any(disk.is_doubted for disk in others) and self._volumes.random() < 0.4:
            self._world.count["old volume"] += 1
            volume = self._volumes.choice(node.images)[0]
        self._world.kill(node, power=self._volumes.random() < 0.5)
        node.disk.mount(volume)

    def _copy_disk(self) -> None:
        node = self._some()
        node.images.append((node.disk.image(), self._world.control.agents[node.name].epochs.seen))

    def _old_disk(self) -> None:
        """A copy that was made earlier is put back."""
        world = self._world
        nodes = [node for node in world.nodes.values() if node.images]
        if nodes and not self._is_harmed():
            node = self._random.choice(nodes)
            world.kill(node, power=True)
            image, seen = self._random.choice(node.images)
            node.disk.restore(image)
            agent = world.control.agents[node.name]
            agent.epochs.seen = seen
            agent.start(world.control.stored, world.now)

    def _etcd_restored(self) -> None:
        """The control plane goes back to any earlier state."""
        control = self._world.control
        control.restore(self._random.choice(control.earlier))

    def _power(self) -> None:
        self._world.kill(self._some(), power=True)

    def _stop_long(self) -> None:
        self._world.kill(self._some(), power=self._random.random() < 0.5, away=self._random.uniform(1.0, 4.0))

    def _power_all(self) -> None:
        for node in self._world.nodes.values():
            self._world.kill(node, power=True)

    def _pause(self) -> None:
        process = self._some().process
        if process is not None:
            process.pause(self._random.uniform(0.05, 3.0))

    def _trap(self) -> None:
        self._some().disk.trap = self._random.choice(TRAPS)

    # Paths

    def _isolate(self) -> None:
        self._block_all(self._some().name)

    def _block_all(self, name: str) -> None:
        seconds = self._random.uniform(0.2, 3.0)
        for other in self._world.nodes:
            if other != name:
                self._block(name, other, seconds)
                self._block(other, name, seconds)

    def _one_way(self) -> None:
        name = self._some().name
        for other in self._world.nodes:
            if other != name and self._random.random() < 0.6:
                pair = (name, other) if self._random.random() < 0.5 else (other, name)
                self._block(*pair)

    def _halves(self) -> None:
        seconds = self._random.uniform(0.2, 3.0)
        left = {name for name in self._world.nodes if self._random.random() < 0.5}
        for name in self._world.nodes:
            for other in self._world.nodes:
                if (name in left) != (other in left):
                    self._block(name, other, seconds)

    def _block(self, source: str, target: str, seconds: float | None = None) -> None:
        world = self._world
        if seconds is None:
            seconds = self._random.uniform(0.2, 3.0)
        world.blocked.add((source, target))
        world.at(world.now + seconds, self._free, source, target)
        for link in list(world.links.values()):
            if {link.sides[0].node.name, link.sides[1].node.name} == {source, target}:
                for side in (0, 1):
                    world.at(world.now + self._random.uniform(0.3, 3.0), link.expire, side)

    def _free(self, source: str, target: str) -> None:
        self._world.blocked.discard((source, target))
        for link in list(self._world.links.values()):
            if any(link.held):
                link.release()

    def _cut_link(self) -> None:
        links = list(self._world.links.values())
        if links:
            self._cut(self._random.choice(links))

    def _cut_links_of(self, node: Node) -> None:
        for link in list(self._world.links.values()):
            if link.sides[0].node is node or link.sides[1].node is node:
                self._cut(link)

    def _cut(self, link: object) -> None:
        """At any byte of either direction; the ends hear of it at different times."""
        from tests.cluster.simulation.network import Link

        assert isinstance(link, Link)
        for side in (0, 1):
            link.lose(side, self._random.randrange(6))
            self._world.at(self._world.now + self._random.choice((0.0, 0.001, 0.2, 1.0)), link.end, side)

    def _slow_links(self) -> None:
        world = self._world
        world.slow_links = self._random.choice((0.02, 0.1, 0.8))
        world.at(world.now + self._random.uniform(0.2, 1.5), self._fast_links)

    def _fast_links(self) -> None:
        self._world.slow_links = 0.0

    # Disks

    def _slow_disk(self) -> None:
        disk = self._some().disk
        disk.sync_seconds = self._random.choice((0.02, 0.1, 0.5, 3.0))
        self._world.at(self._world.now + self._random.uniform(0.3, 3.0), self._mend, disk)

    def _fail_disk(self) -> None:
        disk = self._some().disk
        disk.is_failing = True
        self._world.at(self._world.now + self._random.uniform(0.1, 2.0), self._mend, disk)

    def _mend(self, disk: object) -> None:
        from tests.cluster.simulation.disk import Disk

        assert isinstance(disk, Disk)
        disk.is_failing, disk.sync_seconds = False, 0.0005

    # The control plane

    def _etcd_cut(self) -> None:
        self._agent_fault("is_cut")

    def _etcd_silent(self) -> None:
        self._agent_fault("loses_answers")

    def _etcd_stale(self) -> None:
        self._agent_fault("is_stale")

    def _agent_fault(self, name: str) -> None:
        agents = list(self._world.control.agents.values())
        which = agents if self._random.random() < 0.2 else [self._random.choice(agents)]
        for agent in which:
            setattr(agent, name, True)
            self._world.at(self._world.now + self._random.uniform(0.3, 3.0), setattr, agent, name, False)

    # What operators and retention do

    def _trim(self) -> None:
        for leader in self._world.leaders:
            if leader.core.is_open:
                for partition in leader.core.own:
                    leader.process.take(leader.trim, partition)

    def _hand_over(self) -> None:
        for leader in self._world.leaders:
            if leader.core.peers:
                leader.hand_over(self._random.choice(leader.core.peers))

    def _members(self) -> None:
        """One member is to be replaced, or one more, or one fewer."""
        world = self._world
        names = list(world.nodes)
        if set(world.wanted) == set(world.control.stored.record.replicas):
            size = max(3, min(len(names), len(world.wanted) + self._random.choice((-1, 0, 0, 1))))
            world.wanted = sorted(self._random.sample(names, size))

    def heal(self) -> None:
        """Nothing goes wrong any more."""
        world = self._world
        self.is_on = False
        for source, target in sorted(world.blocked):
            self._free(source, target)
        self._fast_links()
        for node in world.nodes.values():
            self._mend(node.disk)
            self._mount(node)
            node.disk.trap = ""
            world.power_on(node)
            world.start(node)
            if node.process is not None:
                node.process.resume()
        for agent in world.control.agents.values():
            agent.is_cut = agent.loses_answers = agent.is_stale = False
