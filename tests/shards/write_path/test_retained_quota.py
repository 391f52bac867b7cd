"""A partition may retain so many bytes; above that a retained message with a payload is refused."""

from dataclasses import replace
from typing import Any

import pytest

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from router.matching.retained import RetainedRecord, RetainedView
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.reasons import Reason
from rumq.shards.write_path.retained_quota import FREED, RetainedQuota
from tests.commitlog.records import DEAD, NOW, numbers
from tests.shards.bus.world import Hand

MESSAGE_BYTES = 1000
MAX = 20 * MESSAGE_BYTES


def message(number: int, partition: int = 0) -> RetainedRecord:
    """It weighs `MESSAGE_BYTES`."""
    return RetainedRecord(f"t/{partition}/{number}", partition, number, NOW, bytes(32), bytes(MESSAGE_BYTES - 20 - 32))


class World:
    """Partition 0 has a limit, partition 1 has none."""

    def __init__(self) -> None:
        streams = [StreamSpec("small", ("t/0/#",), retained_bytes_max=MAX), StreamSpec("main", ("#",))]
        self.store = open_store(
            SimulatedFiles(),
            "data",
            StoreLayout(streams, lambda f, t: True),
            OpenOptions(NOW, random=numbers(0)),
            holder=DEAD,
        )
        self.hand, self.view = Hand(), RetainedView()
        self.batches = [Batch(), Batch()]
        self.said: list[tuple[int, bool]] = []
        self.quota = RetainedQuota(
            self.store, self.view, self.batches, self.hand, lambda *state: self.said.append(state)
        )

    def retain(self, *messages: RetainedRecord) -> None:
        """In a turn that ends then."""
        for each in messages:
            self.view.put(each)
        self.view.changes += len(messages)
        self.quota.end_turn()

    def forget(self, *messages: RetainedRecord) -> None:
        for each in messages:
            self.view.drop(each)
        self.view.changes += len(messages)
        self.quota.end_turn()

    @property
    def full(self) -> list[bool]:
        return [bool(batch.full_of_retained) for batch in self.batches]


def test_a_partition_is_full_when_its_messages_weigh_as_much_as_it_may_retain() -> None:
    world = World()
    world.retain(*map(message, range(19)))
    assert world.full == [False, False] and world.hand.events == []
    world.retain(message(19))
    assert world.view.bytes_in[0] == MAX
    assert world.full == [True, False] and world.quota.full == {0}
    ((name, fields),) = world.hand.events
    assert name == "retained.full"
    assert fields == {"stream": "small", "partition": 0, "retained_bytes_max": MAX}
    assert world.said == [(0, True)], "publishers in other shards are held to it too"


def test_it_is_told_once_however_much_is_retained_above_it() -> None:
    world = World()
    world.retain(*map(message, range(20)))
    world.retain(message(20))
    assert len(world.hand.events) == len(world.said) == 1


def test_there_is_room_again_below_a_part_of_the_limit_and_not_at_the_first_message_less() -> None:
    world = World()
    messages = [message(number) for number in range(20)]
    world.retain(*messages)
    world.quota.refuse()
    world.forget(messages.pop())
    assert world.view.bytes_in[0] == FREED * MAX and world.full == [True, False]
    world.forget(messages.pop())
    assert world.full == [False, False] and world.said == [(0, True), (0, False)]
    assert world.hand.events[-1] == ("retained.freed", {"stream": "small", "partition": 0, "refused": 1})


def test_a_partition_without_a_limit_is_never_full() -> None:
    world = World()
    world.retain(*[message(number, 1) for number in range(100)])
    assert world.full == [False, False]


@pytest.mark.parametrize(("limit", "is_full"), [(MAX, True), (2 * MAX, False), (None, False)])
def test_a_changed_limit_counts_at_the_next_look(limit: int | None, is_full: bool) -> None:
    world = World()
    world.retain(*map(message, range(20)))
    partition: Any = world.store.own[0]
    partition.spec = replace(partition.spec, retained_bytes_max=limit)
    world.quota.end_turn()
    assert world.full[0], "a turn in which nothing was retained looks at nothing"
    world.quota.look_again()
    world.quota.end_turn()
    assert world.full == [is_full, False]


def test_a_partition_of_another_shard_is_full_as_its_owner_says() -> None:
    world = World()
    world.quota.elsewhere(1, True)
    assert world.full == [False, True] and world.quota.full == set()
    world.quota.elsewhere(1, False)
    assert world.full == [False, False] and world.said == []


def test_a_refused_message_is_counted_and_its_publisher_is_told_why() -> None:
    world = World()
    refusal = world.quota.refuse()
    assert refusal.reason is Reason.QUOTA_EXCEEDED and not refusal.acknowledged and "retained" in refusal.why
    world.quota.refuse()
    assert world.quota.refused == 2
