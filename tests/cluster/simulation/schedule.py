"""One seed, one run: some seconds in which everything goes wrong, then a time in which everything must come right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from tests.cluster.simulation.disk import PARTITIONS
from tests.cluster.simulation.faults import Faults
from tests.cluster.simulation.ledger import Wrong
from tests.cluster.simulation.world import Build, World

RECOVERY_SECONDS = 6.0
CHANGE_SECONDS = 10.0
QUIET_SECONDS = 5.0  # an end of a link is told up to 3 s late


def run(seed: int, say: Callable[[str], None] | None = None, *, packs: bool = False) -> Counter[str]:
    """packs: copies pack their segments, for which no other number is drawn. raises: Wrong, with seed and time"""
    random = Random(seed * 7919 + 1)
    voters = random.choice((3, 3, 3, 5))
    build = Build(
        voters, random.choice((0, 1, 1, 2)), random.random() < 0.5, random.choice((0.01, 0.02, 0.05)),
        random.choice((0.0, 0.0, 0.003, 0.02)), packs,
    )  # fmt: skip
    world = World(seed, build, say)
    try:
        play(world, random.uniform(3.0, 7.0))
    except Wrong as wrong:
        raise Wrong(f"seed {seed}, {world.now:.4f} s: {wrong}") from None
    world.count["events"] = world.events
    world.count["sent again"] = sum(node.disk.sent_again for node in world.nodes.values())
    world.count["acknowledged"] = world.ledger.acknowledged
    world.count["seconds"] = round(world.now)
    return world.count


def play(world: World, seconds: float) -> None:
    world.faults = faults = Faults(world)
    world.run(seconds)
    faults.heal()
    world.tell("everything is healed")
    healed, before = world.now, world.published
    if not world.run(healed + RECOVERY_SECONDS, lambda: world.last_ack > healed and world.published > before):
        raise Wrong(f"nothing was acknowledged for {RECOVERY_SECONDS:.0f} s after everything was healed")
    if not world.run(world.now + CHANGE_SECONDS, lambda: has_changed(world)):
        raise Wrong(f"the change to {world.wanted} has not ended: {world.control.stored.record}")
    world.publishes = False
    if not world.run(world.now + QUIET_SECONDS, lambda: is_even(world)):
        raise Wrong(f"copies differ {QUIET_SECONDS:.0f} s after the last message: {copies(world)}")
    world.ledger.check_disks()
    world.ledger.check_kept(world.voters())


def has_changed(world: World) -> bool:
    record = world.control.stored.record
    return record.old_replicas is None and set(record.replicas) == set(world.wanted)


def is_even(world: World) -> bool:
    """One leader, everything committed, and every member has it."""
    leaders = [each for each in world.leaders if each.core.is_open]
    if len(leaders) != 1:
        return False
    core = leaders[0].core
    disks = [world.nodes[name].disk for name in world.control.stored.record.replicas]
    return all(
        core.committed(p) == disk.parts[p].durable.end_lsn == world.nodes[core.node].disk.parts[p].now.end_lsn
        for p in PARTITIONS
        for disk in disks
    )


def copies(world: World) -> dict[str, list[int]]:
    return {n: [node.disk.parts[p].now.end_lsn for p in PARTITIONS] for n, node in world.nodes.items()}
