"""Write admission: what publishers hear while a partition takes nothing, and what the operator hears of it.

docs/decisions/0007-a-full-disk.md; on a disk that really is full: tests/faults/test_full_disk.py."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import matches
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.write_path.write_admission import FREED, WriteAdmission
from tests.commitlog.records import DEAD, NOW, numbers
from tests.shards.bus.world import Hand

RESERVE = 1000
STATE = StreamSpec("_state", (), 1, "process", 1 << 20, 86_400)


class Publisher:
    def __init__(self) -> None:
        self.dismissed: list[Reason] = []

    def dismiss(self, reason: Reason, why: str | None = None) -> None:
        self.dismissed.append(reason)


class World:
    """Partitions 0 and 1 are ours, 2 is another shard's; 3 is the session journal. said: to the other shards"""

    def __init__(self, free_bytes_min: int = RESERVE) -> None:
        def elsewhere(spec: StreamSpec, where: int, number: int) -> RemotePartition | None:
            return RemotePartition(spec, where, number, 1, 7) if where == 2 else None

        self.store = open_store(
            SimulatedFiles(),
            "data",
            StoreLayout([StreamSpec("main", ("#",), 3)], matches, internal=STATE, elsewhere=elsewhere),
            OpenOptions(NOW, random=numbers(0)),
            holder=DEAD,
        )
        self.hand = Hand()
        self.batches = [Batch() for _ in range(3)]
        self.said: list[tuple[int, bool, str]] = []
        self.admission = WriteAdmission(
            self.store, self.batches, self.hand, free_bytes_min=free_bytes_min,
            say=lambda *state: self.said.append(state),
        )  # fmt: skip

    @property
    def refusing(self) -> list[bool]:
        return [bool(batch.refusing) for batch in self.batches]

    def refuse(self, index: int, publisher: Publisher | None = None) -> Reason | None:
        """publisher: one that cannot be answered"""
        refusal = self.admission.refuse(
            publisher or Publisher(),  # type: ignore[arg-type]
            index,
            is_unanswerable=publisher is not None,
        )
        return None if refusal is None else refusal.reason


@pytest.mark.parametrize(
    ("number", "reason", "for_want_of_room"),
    [
        (errno.ENOSPC, Reason.QUOTA_EXCEEDED, True),
        (errno.EDQUOT, Reason.QUOTA_EXCEEDED, True),
        (errno.EIO, Reason.IMPLEMENTATION_SPECIFIC_ERROR, False),
        (None, Reason.IMPLEMENTATION_SPECIFIC_ERROR, False),
    ],
)
def test_a_partition_that_is_offline_refuses_and_the_others_do_not(
    number: int | None, reason: Reason, for_want_of_room: bool
) -> None:
    world = World()
    world.admission.offline(0, number, "why")
    assert world.refusing == [True, False, False]
    assert world.refuse(0) is reason
    assert world.said == [(0, for_want_of_room, "offline")]
    world.admission.online(0)
    assert world.refusing == [False] * 3 and world.said[1:] == [(0, False, "")]


def test_a_partition_is_told_to_be_offline_once_and_online_with_what_it_refused() -> None:
    world = World()
    world.admission.offline(1, errno.EIO, "why")
    world.admission.offline(1, errno.EIO, "why")
    world.refuse(1)
    world.refuse(1)
    world.admission.online(1)
    world.admission.online(1)
    assert world.hand.events == [
        ("log.offline", {"stream": "main", "partition": 1, "why": "why"}),
        ("log.online", {"stream": "main", "partition": 1, "refused": 2}),
    ]
    assert world.admission.refused == 2, "of this shard so far, for $SYS"


def test_a_journal_that_is_offline_refuses_no_publisher_and_is_told() -> None:
    world = World()
    world.admission.offline(3, errno.EIO, "why")
    assert world.refusing == [False] * 3 and world.said == []
    assert world.hand.events[0][1]["stream"] == "_state"


def test_below_the_reserve_every_partition_of_ours_refuses_until_more_is_free() -> None:
    world = World()
    world.admission.free(RESERVE)
    assert world.refusing == [False] * 3
    world.admission.free(RESERVE - 1)
    assert world.refusing == [True] * 3 and world.admission.is_full
    assert world.refuse(1) is Reason.QUOTA_EXCEEDED
    assert world.said == [(0, True, "full"), (1, True, "full")], "of a partition its owner speaks"
    world.admission.free(int(RESERVE * FREED) - 1)
    assert world.refusing == [True] * 3, "a little more is not enough: it would be full again at once"
    world.admission.free(int(RESERVE * FREED))
    assert world.refusing == [False] * 3 and not world.admission.is_full
    assert world.hand.events == [
        ("log.full", {"free_bytes": RESERVE - 1, "free_bytes_min": RESERVE}),
        ("log.freed", {"free_bytes": RESERVE * FREED, "refused": 1}),
    ]


def test_without_a_reserve_records_are_taken_to_the_last_byte() -> None:
    world = World(free_bytes_min=0)
    world.admission.free(0)
    assert world.refusing == [False] * 3


def test_a_data_directory_that_is_gone_refuses_everything_until_it_is_measured_again() -> None:
    world = World()
    for _ in range(2):
        world.admission.unreachable(FileNotFoundError(errno.ENOENT, "gone"))
    assert world.refusing == [True] * 3 and world.said == [
        (0, False, "unreachable"),
        (1, False, "unreachable"),
    ]
    assert world.refuse(0) is Reason.IMPLEMENTATION_SPECIFIC_ERROR
    world.admission.free(10 * RESERVE)
    assert world.refusing == [False] * 3
    names = [name for name, _ in world.hand.events]
    assert names == ["log.unreachable", "log.reachable"] and world.hand.events[1][1] == {"refused": 1}


def test_a_partition_of_another_shard_refuses_as_its_owner_says() -> None:
    world = World()
    world.admission.elsewhere(2, True, "full")
    assert world.refusing == [False, False, True] and world.refuse(2) is Reason.QUOTA_EXCEEDED
    assert not world.admission.is_offline_elsewhere(2)
    world.admission.elsewhere(2, False, "offline")
    assert world.refuse(2) is Reason.IMPLEMENTATION_SPECIFIC_ERROR and world.admission.is_offline_elsewhere(2)
    world.admission.elsewhere(2, False, "")
    assert world.refusing == [False] * 3 and not world.admission.is_offline_elsewhere(2)
    assert world.said == [] and world.hand.events == []


def test_a_client_that_cannot_be_answered_is_dismissed_when_its_partition_takes_records_again() -> None:
    """3.1.1 has no reason code: it reconnects, and sends again in order what was not acknowledged."""
    world, waiting, other = World(), Publisher(), Publisher()
    world.admission.offline(0, errno.EIO, "why")
    world.admission.offline(1, errno.EIO, "why")
    assert world.refuse(0, waiting) is None and world.refuse(1, other) is None
    world.refuse(0, waiting)
    world.admission.online(0)
    assert (waiting.dismissed, other.dismissed) == ([Reason.SERVER_BUSY], [])
    world.admission.online(1)
    assert (waiting.dismissed, other.dismissed) == ([Reason.SERVER_BUSY], [Reason.SERVER_BUSY])


EVENTS = st.one_of(
    st.tuples(st.just("offline"), st.integers(0, 1)),
    st.tuples(st.just("online"), st.integers(0, 1)),
    st.tuples(st.just("free"), st.sampled_from([0, RESERVE, 2 * RESERVE])),
    st.tuples(st.just("unreachable"), st.just(0)),
    st.tuples(st.just("elsewhere"), st.integers(0, 1)),
)


@given(st.lists(EVENTS))
def test_whatever_happens_a_partition_refuses_as_long_as_there_is_a_reason_and_other_shards_know_the_last_one(
    events: list[tuple[str, int]],
) -> None:
    world = World()
    offline: set[int] = set()
    is_full = is_gone = is_refused_elsewhere = False
    for name, number in events:
        if name == "offline":
            world.admission.offline(number, errno.EIO, "why")
            offline.add(number)
        elif name == "online":
            world.admission.online(number)
            offline.discard(number)
        elif name == "free":
            world.admission.free(number)
            is_gone, is_full = False, number < RESERVE or (is_full and number < RESERVE * FREED)
        elif name == "unreachable":
            world.admission.unreachable(OSError(errno.EIO, "gone"))
            is_gone = True
        else:
            world.admission.elsewhere(2, False, "offline" if number else "")
            is_refused_elsewhere = bool(number)
        everything = is_full or is_gone
        assert world.refusing == [
            everything or 0 in offline, everything or 1 in offline, everything or is_refused_elsewhere,
        ]  # fmt: skip
        told = {index: bool(why) for index, _, why in world.said}
        assert [told.get(index, False) for index in (0, 1)] == world.refusing[:2] and 2 not in told
