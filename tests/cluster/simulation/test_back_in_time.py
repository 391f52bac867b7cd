"""Schedules in which something goes back in time: the record of a shard, a disk, or the directories of a log.

What must hold: an epoch has one leader; a copy is never cut below what it knows to be committed; where nobody can say
what is right, nobody leads until an operator has chosen a copy. docs/explanation/replication.md, R1, R2, R3, R5,
R11."""

from __future__ import annotations

from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.replication import effects as fx
from tests.cluster.simulation.disk import PARTITIONS, DiskState, last_name
from tests.cluster.simulation.ledger import Ledger
from tests.cluster.simulation.process import Node
from tests.cluster.simulation.world import Build, World

LONG = 1e6
Logs = dict[str, list[int]]


class NoLedger(Ledger):
    """Of a world in which a disk lies: what was acknowledged cannot all stay. It is looked at disks alone."""

    def opened(self, node: str, epoch: int) -> None: ...

    def committed(self, node: str, epoch: int, partition: str, lsn: int) -> None: ...

    def acked(self, partition: str, lsn: int, value: int, record: ShardRecord) -> None:
        self.acknowledged += 1

    def check_kept(self, record: object) -> None: ...


class Site(World):
    """Three nodes without other faults. alarms: what was told"""

    def __init__(self, *, a_disk_lies: bool = False) -> None:
        self.alarms: list[str] = []
        super().__init__(1, Build(voters=3, spares=0, writes_early=False))
        if a_disk_lies:
            self.ledger = NoLedger({name: node.disk for name, node in self.nodes.items()})

    def alarmed(self, node: Node, alarm: fx.Alarm) -> None:
        self.alarms.append(alarm.name)

    def led(self, seconds: float = 1.0) -> Node:
        """Run on; the node that leads then."""
        self.run(self.now + seconds)
        [leader] = [each for each in self.leaders if each.core.is_open and not each.core.is_deposed]
        return leader.process.node

    def others(self, *nodes: Node) -> list[Node]:
        return [node for node in self.nodes.values() if node not in nodes]

    def stop(self, node: Node) -> None:
        self.kill(node, power=False, away=LONG)

    def is_led(self, seconds: float = 8.0) -> bool:
        self.run(self.now + seconds)
        return any(each.core.is_open and not each.core.is_deposed for each in self.leaders)

    def force(self, node: Node) -> None:
        """`rumqd cluster force-leader`: one copy is chosen, the others learn from it."""
        stored = self.control.stored
        epoch = max(stored.record.epoch, *(each.disk.promised for each in self.nodes.values())) + 1
        forced = ShardRecord(
            epoch=epoch, leader="", claim="forced-1", term="forced-1", replicas=[node.name], forced=epoch,
            config=stored.record.config + 1, learners=[each.name for each in self.others(node)],
        )  # fmt: skip
        self.control.restore(Versioned(forced, stored.revision + 1))


def logs_of(site: Site, node: Node) -> Logs:
    return {key: site.nodes[node.name].disk.values(key) for key in PARTITIONS}


def noted(node: Node, marks: dict[str, int]) -> None:
    """A second has gone by since the last commit."""
    held = {key: (part.durable.end_lsn, last_name(part)) for key, part in node.disk.parts.items()}
    DiskState(node.disk).note_copies(marks, held)


def committed_at(site: Site, node: Node) -> dict[str, int]:
    process = node.process
    assert process is not None and process.role is not None
    return process.role.marks()


def stop_noted(site: Site, *nodes: Node) -> None:
    """One after the other, a second after its last commit, which is in its notes then."""
    for node in nodes:
        marks = committed_at(site, node)
        site.stop(node)
        noted(node, marks)


def test_an_etcd_that_was_restored_while_a_node_was_down_gives_no_epoch_to_two_leaders() -> None:
    site = Site()
    first = site.led()
    old = site.control.stored
    down = site.others(first)[0]
    site.stop(down)
    site.run(site.now + 0.5)
    site.stop(first)
    site.start(first)
    assert site.led(2.0).name != down.name
    assert site.control.stored.record.epoch > old.record.epoch
    site.control.restore(old)
    site.start(down)
    before = site.ledger.acknowledged
    leader = site.led(8.0)
    assert site.ledger.acknowledged > before, "it goes on"
    assert site.control.stored.record.leader == leader.name, "the record says who leads"


def test_an_etcd_that_names_old_voters_elects_nobody_behind_the_new_ones() -> None:
    """{n0, n1, n2} was changed to {n0, n3, n4}; the record goes back, and n1 and n2 have slept through all of it."""
    wide = World(3, Build(voters=3, spares=2, writes_early=False))
    wide.run(1.0)
    old = wide.control.stored
    wide.wanted = ["n0#0", "n3#0", "n4#0"]
    assert wide.run(8.0, lambda: wide.control.stored.record.config == 2)
    for name in ("n0#0", "n3#0", "n4#0"):
        wide.kill(wide.nodes[name], power=False, away=LONG)
    acknowledged = wide.ledger.acknowledged
    wide.alarmed = lambda node, alarm: None  # type: ignore[method-assign]
    wide.control.restore(old)
    wide.run(wide.now + 5.0)
    assert wide.ledger.acknowledged == acknowledged, "n1 and n2 know that they decide no more"
    for name in ("n3#0", "n4#0"):
        wide.start(wide.nodes[name])
    wide.run(wide.now + 5.0)
    assert wide.ledger.acknowledged > acknowledged, "a majority of the new ones goes on"


def lying(site: Site) -> tuple[Node, Node, Node, Logs]:
    """Two nodes go on with a log that lacks what the third one knows to be committed, which is away.

    returns: the one whose disk is an old copy, the one that slept, the third one, and what that has"""
    leader = site.led()
    slept, liar = site.others(leader)
    image = liar.disk.image()
    site.stop(slept)
    site.run(site.now + 1.5)
    marks = committed_at(site, leader)
    site.stop(leader)
    noted(leader, marks)
    kept = logs_of(site, leader)
    site.stop(liar)
    liar.disk.restore(image)
    liar.disk.note = image.note  # etcd was away, so no stamp tells of it
    site.start(slept)
    site.start(liar)
    return liar, slept, leader, kept


def test_an_old_disk_that_nobody_notices_never_cuts_the_complete_copy() -> None:
    site = Site(a_disk_lies=True)
    _, _, third, kept = lying(site)
    assert site.is_led(), "nobody can know yet"
    site.start(third)
    assert not site.is_led(), "now somebody does"
    assert "cluster.copies_disagree" in site.alarms
    for key in PARTITIONS:
        end = third.disk.note.marks[key]
        assert end > 0 and site.nodes[third.name].disk.values(key)[:end] == kept[key][:end]


def test_an_operator_chooses_a_copy_and_the_others_become_equal_to_it() -> None:
    site = Site(a_disk_lies=True)
    liar, slept, third, kept = lying(site)
    assert site.is_led()
    site.start(third)
    assert not site.is_led()
    site.force(third)
    site.wanted = [third.name, liar.name, slept.name]
    assert site.is_led(12.0)
    assert sorted(site.control.stored.record.replicas) == sorted(site.nodes), "the healthy copies are members again"
    site.publishes = False
    site.run(site.now + 2.0)
    logs = [logs_of(site, node) for node in site.nodes.values()]
    assert logs[0] == logs[1] == logs[2]
    for key in PARTITIONS:
        end = len(kept[key])
        assert logs[0][key][:end] == kept[key], "everything that the chosen copy had"


def test_two_nodes_without_their_volumes_elect_no_empty_log() -> None:
    site = Site()
    leader = site.led(2.0)
    emptied = site.others(leader)
    kept = logs_of(site, leader)
    stop_noted(site, *emptied, leader)
    for node in emptied:
        node.disk.vanish(list(PARTITIONS), None)
        site.start(node)
    assert not site.is_led()
    site.start(leader)
    assert not site.is_led(), "one sound copy is no majority"
    assert logs_of(site, leader) == kept and "cluster.copies_disagree" in site.alarms
    site.force(leader)
    site.wanted = sorted(site.nodes)
    assert site.is_led(12.0)
    assert all(len(values) >= len(kept[key]) for key, values in logs_of(site, emptied[0]).items())


def test_one_node_without_its_volume_and_one_that_lags_wait_for_the_third() -> None:
    site = Site()
    leader = site.led()
    lags, emptied = site.others(leader)
    site.stop(lags)
    site.run(site.now + 1.5)
    stop_noted(site, emptied, leader)
    emptied.disk.vanish(list(PARTITIONS), None)
    site.start(emptied)
    site.start(lags)
    assert not site.is_led()
    before = site.ledger.acknowledged
    site.start(leader)
    assert site.is_led() and site.ledger.acknowledged > before, "nothing is lost, and it goes on"


def test_two_nodes_that_get_their_volumes_back_lead_with_everything_that_they_had() -> None:
    site = Site()
    leader = site.led(2.0)
    emptied = site.others(leader)
    kept = logs_of(site, leader)
    stop_noted(site, *emptied, leader)
    volumes = {node.name: node.disk.image() for node in emptied}
    for node in emptied:
        node.disk.unmount()
        site.start(node)
    site.start(leader)
    assert not site.is_led()
    for node in emptied:
        site.stop(node)
        node.disk.mount(volumes[node.name])
        site.start(node)
    assert site.is_led() and site.count["copies found again"] == 2
    assert all(values[: len(kept[key])] == kept[key] for key, values in logs_of(site, emptied[0]).items())


def test_a_volume_of_another_moment_and_a_copy_that_lags_wait_for_the_third() -> None:
    site = Site()
    leader = site.led()
    lags, other = site.others(leader)
    site.stop(lags)
    older = other.disk.image()
    site.run(site.now + 1.5)
    stop_noted(site, other, leader)
    other.disk.unmount()
    site.start(other)
    site.run(site.now + 0.5)
    site.stop(other)
    other.disk.mount(older)
    site.start(other)
    site.start(lags)
    assert not site.is_led()
    before = site.ledger.acknowledged
    site.start(leader)
    assert site.is_led() and site.ledger.acknowledged > before, "nothing is lost, and it goes on"
