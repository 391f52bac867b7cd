"""A snapshot of the journal is written in parts; once it is committed, what is older may go."""

from itertools import chain

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.journal import entries as e
from rumq.shards.recovery import journal_snapshot
from rumq.shards.recovery.checkpoint import CheckpointBuilder
from rumq.shards.recovery.journal_snapshot import SnapshotWriter
from tests.commitlog.records import NOW
from tests.shards.recovery.world import Run


class World:
    def __init__(self, orders: list[e.StandingOrder] | None = None) -> None:
        self.run = Run(SimulatedFiles())
        self.orders = orders or []
        self.records: list[list[e.JournalEntry]] = []
        run = self.run
        assert run.store.internal is not None
        self.checkpoints = CheckpointBuilder(run.store.partitions, run.recorder, run.router, run.registry.sessions.get)
        self.snapshots = SnapshotWriter(
            run.store.internal, run.store.partitions, run.recorder, run.router, self.checkpoints,
            lambda entries, now_us: self.records.append(entries), lambda: self.orders,
        )  # fmt: skip

    def kinds(self) -> list[list[type]]:
        return [[type(entry) for entry in record] for record in self.records]


def test_it_begins_with_the_layout_and_ends_with_what_it_covers() -> None:
    world = World()
    world.run.session("pump")
    world.snapshots.begin(("main/g1/p0",), NOW, 0.0)
    while world.snapshots.is_under_way:
        world.snapshots.write_part(NOW)
    layout = world.records[0][0]
    assert isinstance(layout, e.Layout) and layout.last_number == world.run.recorder.last_number > 0
    first, *parts, last = world.kinds()
    assert first == [e.Layout, e.SnapshotBegun, e.SessionOpened, e.WillEntry, e.Checkpoint] and last == [
        e.SnapshotEnded
    ]
    (sessions,) = [part for part in parts if e.Checkpoint in part]
    assert sessions.index(e.Checkpoint) < sessions.index(e.SessionOpened), "cursors refer to the checkpoint before them"


def test_many_sessions_are_written_over_many_turns() -> None:
    world = World()
    for number in range(journal_snapshot.PART_SESSIONS + 1):
        world.run.session(f"c{number}")
    world.snapshots.begin(("main/g1/p0",), NOW, 0.0)
    world.snapshots.write_part(NOW)
    assert world.snapshots.is_under_way
    world.snapshots.write_part(NOW)
    opened = [
        entry for record in world.records for entry in record if isinstance(entry, e.SessionOpened) and entry.fresh
    ]
    assert len(opened) == journal_snapshot.PART_SESSIONS + 1


def test_all_orders_in_force_are_written_before_the_sessions_so_many_a_turn() -> None:
    orders = [e.StandingOrder("ban", "client", f"c{n}", 7, 1.0) for n in range(journal_snapshot.PART_ORDERS + 1)]
    world = World(orders)
    world.run.session("pump")
    world.snapshots.begin(("main/g1/p0",), NOW, 0.0)
    while world.snapshots.is_under_way:
        world.snapshots.write_part(NOW)
    first, *parts = world.records
    assert [type(entry) for entry in first] == [e.Layout, e.SnapshotBegun, e.SessionOpened, e.WillEntry, e.Checkpoint]
    found = [entry for (entry,) in parts[:2] if isinstance(entry, e.Layout)]
    assert [len(each.orders) for each in found] == [journal_snapshot.PART_ORDERS, 1]
    assert [order for each in found for order in each.orders] == orders


def test_kept_values_are_written_beside_the_orders_each_as_it_is_when_its_part_comes() -> None:
    world = World([e.StandingOrder("drain", until_us=9)])
    kept = {b"%d" % number: b"old" for number in range(journal_snapshot.PART_ORDERS)}
    world.snapshots._standing = lambda: chain(world.orders, (e.KeptValue(name, kept[name]) for name in list(kept)))
    world.snapshots.begin(("main/g1/p0",), NOW, 0.0)
    kept |= dict.fromkeys(kept, b"new")
    while world.snapshots.is_under_way:
        world.snapshots.write_part(NOW)
    found = [entry for (entry,) in world.records[1:3] if isinstance(entry, e.Layout)]
    assert [(len(each.orders), len(each.kept)) for each in found] == [(1, journal_snapshot.PART_ORDERS - 1), (0, 1)]
    assert [each for part in found for each in part.kept] == [e.KeptValue(name, b"new") for name in kept]


def test_nothing_goes_before_the_snapshot_is_committed() -> None:
    run = Run(SimulatedFiles())
    run.session("pump")
    run.journal.write_snapshot(NOW)
    assert run.journal.take_removal() is None
