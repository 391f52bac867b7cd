"""Where a replay begins in each partition, and what was retained then; one search at a time, clients in turn."""

import errno
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.chunk import FLAG_QOS, FLAG_RETAIN
from commitlog.testing.simulated_files import SimulatedFiles
from router.commands import StartFound
from router.effects import FindStart
from router.matching.retained import RetainedView
from rumq.mqtt.topics import matches
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.delivery.replay_start import HERE, SEARCHES, ReplayStart
from tests.commitlog.records import DEAD, NOW, frame, index, numbers, write
from tests.shards.bus.world import Hand
from tests.shards.world import ByHand

SECOND = 1_000_000


class World:
    """Partition 0 has stream a, partition 1 all else; with `remote` partition 2 is another shard's.

    Record n of each partition is at NOW + n seconds. asked: of other shards"""

    def __init__(self, *, remote: bool = False) -> None:
        def elsewhere(spec: StreamSpec, where: int, number: int) -> RemotePartition | None:
            return RemotePartition(spec, where, number, 1, 7) if spec.name == "far" else None

        streams = [StreamSpec("a", ("a/#",), segment_bytes_max=1 << 16), StreamSpec("main", ("#",))]
        if remote:
            streams.insert(1, StreamSpec("far", ("far/#",)))
        self.store = open_store(
            SimulatedFiles(),
            "data",
            StoreLayout(streams, matches, elsewhere=elsewhere),
            OpenOptions(NOW, random=numbers(0), direct_bytes_min=1 << 30),
            holder=DEAD,
        )
        self.view = RetainedView()
        self.hand, self.pool = Hand(), ByHand()
        self.asked: list[tuple[FindStart, Any, int | None]] = []
        them: Any = self if remote else None
        self.start = ReplayStart(self.store, self.view, self.pool, self.hand, self.hand, them)

    def find_start(self, effect: FindStart, local: Any, owner: int | None) -> None:
        self.asked.append((effect, local, owner))

    def publish(self, topic: str, payload: bytes = b"x", *, retain: bool = True) -> None:
        partition: Any = self.store.partitions[self.store.place(topic)]
        name = topic.encode()
        number = partition.topic_ids.get(name)
        if number is None:
            number = partition.add_topic(name)
        packet = frame(name, payload)
        row = bytearray(32)
        row[0:4] = number.to_bytes(4, "little")
        row[20:24] = (len(packet) - len(payload)).to_bytes(4, "little")
        row[28] = 1 | 4 * retain | 32 * (not payload)
        flags = FLAG_QOS | FLAG_RETAIN * retain
        chunk = partition.append(row, packet, 1, flags, NOW + partition.next_lsn * SECOND, b"")
        write(partition)
        self.view.update(partition.index, chunk, partition.topic_names)

    def found(self) -> list[tuple[str, dict[int, int], list[str]]]:
        """The commands to the router: reader's key, lsns, topics of what was retained."""
        items = [item for item in self.hand.items if isinstance(item, StartFound)]
        return [(each.reader.key, each.lsns, sorted(r.topic for r in each.retained)) for each in items]


def effect(
    key: str = "c", ts_us: int | None = NOW, *, topic: str | None = None, offset: int | None = None,
    retained: str | None = None,
) -> FindStart:  # fmt: skip
    reader: Any = SimpleNamespace(key=key, closed=False)
    return FindStart(reader, ts_us, topic.encode() if topic else None, offset, retained)


# One search


@pytest.mark.parametrize(("seconds", "lsns"), [(-5, {0: 0, 1: 0}), (2, {0: 2, 1: 1}), (9, {0: 3, 1: 1})])
def test_a_time_is_the_first_record_at_or_after_it_in_each_partition(seconds: int, lsns: dict[int, int]) -> None:
    world = World()
    for topic in ("a/1", "a/1", "a/1", "b"):
        world.publish(topic)
    world.start.start(effect(ts_us=NOW + seconds * SECOND))
    world.pool.work()
    assert world.found() == [("c", lsns, [])]


@pytest.mark.parametrize(("offset", "lsn"), [(0, 1), (1, 3), (2, 4), (10**12, 5)])
def test_an_offset_is_that_of_the_topic_in_the_one_partition_that_has_it(offset: int, lsn: int) -> None:
    world = World()
    for topic in ("a/0", "a/1", "a/0", "a/1", "a/1"):
        world.publish(topic)
    world.start.start(effect(ts_us=None, topic="a/1", offset=offset))
    world.pool.work()
    assert world.found() == [("c", {0: lsn}, [])]


def test_what_was_retained_then_comes_with_it() -> None:
    world = World()
    for topic, payload in (("a/0", b"1"), ("a/1", b"1"), ("b", b"1"), ("a/0", b""), ("a/2", b"1")):
        world.publish(topic, payload)
    world.publish("a/3", retain=False)
    world.start.start(effect(ts_us=NOW + 2 * SECOND, retained="a/#"))
    world.pool.work()
    assert world.found() == [("c", {0: 2, 1: 1}, ["a/0", "a/1"])], "a/0 was removed later, a/2 came later"


def test_what_retention_took_since_counts_as_far_as_it_is_still_retained() -> None:
    world = World()
    for number in range(6):
        world.publish(f"a/{number}", bytes(30_000))
    partition: Any = world.store.partitions[0]
    index(partition)
    removal = partition.take_oldest(2)
    assert removal is not None
    removal.run()
    partition.removed(removal)
    assert partition.first_lsn == 2
    (gone,) = world.view.find("a/1")
    world.view.drop(gone)  # as when it has expired
    world.start.start(effect(ts_us=NOW + 4 * SECOND, retained="#"))
    world.pool.work()
    ((_, lsns, retained),) = world.found()
    assert lsns[0] == 4 and retained == ["a/0", "a/2", "a/3"]


# Many searches


def test_one_search_runs_at_a_time_in_a_lane_of_its_own() -> None:
    world = World()
    for key in ("c", "d"):
        world.start.start(effect(key))
    assert len(world.pool.jobs) == 1 and [*world.pool.lanes] == [SEARCHES] and world.start.searches == 1
    world.pool.work()
    assert len(world.pool.jobs) == 1 and world.start.searches == 2


def test_clients_have_their_searches_in_turn_in_the_order_in_which_they_came() -> None:
    world = World()
    for key in ("greedy", "greedy", "greedy", "c", "d"):
        world.start.start(effect(key))
    while world.pool.jobs:
        world.pool.work()
    assert [key for key, _, _ in world.found()] == ["greedy", "greedy", "c", "d", "greedy"]


def test_a_client_s_filters_with_the_same_time_share_a_scan() -> None:
    world = World()
    for topic in ("a/0", "a/1", "b"):
        world.publish(topic)
    world.start.start(effect("first"))
    for retained, ts_us in (("a/0", NOW + 9), ("b", NOW + 9 * SECOND), ("a/#", NOW + 9), ("a/1", NOW + 9)):
        world.start.start(effect("c", ts_us, retained=retained))
    while world.pool.jobs:
        world.pool.work()
    assert world.start.searches == 3
    assert [retained for _, _, retained in world.found()[1:]] == [["a/0"], ["a/0"], [], ["b"]]


def test_a_search_that_nobody_wants_any_more_is_dropped() -> None:
    world = World()
    first, gone, last = effect("first"), effect("gone"), effect("last")
    for each in (first, gone, last):
        world.start.start(each)
    gone.reader.closed = True
    while world.pool.jobs:
        world.pool.work()
    assert [key for key, _, _ in world.found()] == ["first", "last"] and world.start.searches == 2


def test_a_client_that_leaves_during_its_search_gets_no_answer_and_the_scan_ends() -> None:
    world = World()
    for number in range(3):
        world.publish(f"a/{number}")
    wanted = effect("c", NOW + 9 * SECOND, retained="#")
    world.start.start(wanted)
    wanted.reader.closed = True
    job, done = world.pool.jobs.popleft()
    lsns, retained = job()
    assert retained == []
    done((lsns, retained), None)
    assert world.found() == []


def test_a_disk_that_fails_is_told_and_the_replay_begins_at_the_end() -> None:
    world = World()
    world.start.start(effect())
    world.start.start(effect("d"))
    _, done = world.pool.jobs.popleft()
    done(None, OSError(errno.EIO, "broken"))
    assert world.found() == [("c", {}, [])]
    assert [name for name, _ in world.hand.events] == ["log.failed"]
    world.pool.lanes.popleft()
    world.pool.work()
    assert len(world.found()) == 2, "and the next search runs"


# With other shards


@pytest.mark.parametrize(("topic", "owner", "is_here"), [(None, None, True), ("a/1", HERE, True), ("far/1", 7, False)])
def test_the_owner_of_the_topic_searches_or_all_shards(topic: str | None, owner: int | None, is_here: bool) -> None:
    world = World(remote=True)
    wanted = effect(topic=topic, offset=None if topic is None else 0)
    world.start.start(wanted)
    ((asked, local, of),) = world.asked
    assert asked is wanted and of == owner and (local is not None) is is_here and not world.pool.jobs


def test_what_is_found_here_joins_what_the_others_find() -> None:
    world = World(remote=True)
    world.publish("a/1")
    world.start.start(effect(ts_us=NOW + SECOND))
    found: list[Any] = []
    world.asked[0][1](lambda lsns, retained: found.append((lsns, retained)))
    world.pool.work()
    assert found == [({0: 1, 2: 0}, [])] and world.found() == []
