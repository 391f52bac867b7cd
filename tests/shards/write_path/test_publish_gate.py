"""The publish gate: publishers' numbers, and which part refuses a message that does not come in."""

import errno
from types import SimpleNamespace
from typing import Any

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from router.matching.retained import RetainedView
from rumq.auth.identity import Identity
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import matches
from rumq.session.ports.backpressure import BackpressureBits
from rumq.shards.write_path.publish_gate import PublishGate
from rumq.shards.write_path.retained_quota import RetainedQuota
from rumq.shards.write_path.topic_registry import TopicRegistry
from rumq.shards.write_path.write_admission import WriteAdmission
from tests.commitlog.records import DEAD, NOW, numbers
from tests.shards.bus.world import Hand

STATE = StreamSpec("_state", (), 1, "process", 1 << 20, 86_400)
PUBLISHER: Any = object()


class World:
    """Two partitions of a stream with room for two topics."""

    def __init__(self) -> None:
        self.store = open_store(
            SimulatedFiles(),
            "data",
            StoreLayout([StreamSpec("main", ("#",), 2, topics_max=2)], matches, internal=STATE),
            OpenOptions(NOW, random=numbers(0)),
            holder=DEAD,
        )
        self.hand, self.batches = Hand(), [Batch(), Batch()]
        self.admission = WriteAdmission(self.store, self.batches, self.hand, free_bytes_min=0, say=lambda *state: None)
        self.quota = RetainedQuota(self.store, RetainedView(), self.batches, self.hand, lambda index, full: None)
        self.backpressure: Any = SimpleNamespace(bits=BackpressureBits(), pause_publisher=lambda link, bulk: None)
        topics = TopicRegistry(self.store, self.hand)
        undecided: Any = None
        budget: Any = SimpleNamespace(match=lambda client, name: None, change_filters=lambda client: 0.0)
        self.gate = PublishGate(
            self.store, self.batches, topics, self.admission, self.quota, self.backpressure, budget, undecided
        )


def client(client_id: str | None, user: str | None) -> Any:
    identity = None if user is None else Identity(user)
    return SimpleNamespace(client_id=client_id, identity=identity, transport=SimpleNamespace(peer="10.0.0.1:7"))


def test_a_publisher_has_a_number_in_each_partition_that_is_never_0() -> None:
    """0 is a record without a publisher: docs/reference/log-format.md, "Row"."""
    gate = World().gate
    first, again, other = (gate.publisher_number(0, name) for name in ("a", "a", "b"))
    assert first == again != other and 0 not in (first, other)
    assert gate.publisher_number(1, "b") == 1, "each partition counts for itself"


def test_a_partition_that_is_offline_refuses_in_its_own_words() -> None:
    world = World()
    world.admission.offline(1, errno.ENOSPC, "full")
    refusal = world.gate.refuse_publish(PUBLISHER, 1, is_unanswerable=False)
    assert refusal is not None and "disk" in refusal.why
    assert world.gate.refuse_publish(PUBLISHER, 1, is_unanswerable=True) is None, "and it is dismissed later"
    assert (world.admission.refused, world.quota.refused) == (2, 0)


def test_what_a_partition_does_not_refuse_altogether_was_a_retained_message_too_many() -> None:
    world = World()
    world.admission.offline(1, errno.EIO, "why")
    refusal = world.gate.refuse_publish(PUBLISHER, 0, is_unanswerable=True)
    assert refusal is not None and refusal.reason is Reason.QUOTA_EXCEEDED and "retained" in refusal.why
    assert (world.admission.refused, world.quota.refused) == (0, 1)


def test_a_topic_that_there_is_no_room_for_is_refused_and_its_publisher_is_named() -> None:
    world = World()
    assert world.gate.add_topic(b"a") and world.gate.add_topic(b"b") and not world.gate.add_topic(b"c")
    assert world.gate.topics.get(b"a") is not None and world.gate.topics.get(b"c") is None
    assert "2 topics" in world.gate.refuse_topic(b"c", client("pump-7", "ann"), None)
    ((name, fields),) = world.hand.events
    assert name == "topic.refused"
    assert (fields["client_id"], fields["peer"], fields["user"]) == ("pump-7", "10.0.0.1:7", None)


def test_a_user_who_may_bring_no_more_topics_into_being_is_named_too() -> None:
    world = World()
    assert "user 'ann' may bring 1 topics" in world.gate.refuse_topic(b"c", client(None, "ann"), 1)
    fields = world.hand.events[0][1]
    assert (fields["user"], fields["client_id"], fields["topics_max"]) == ("ann", "", 1)


def test_what_the_gate_shows_of_backpressure_is_that_of_the_shard() -> None:
    world = World()
    assert world.gate.backpressure is world.backpressure.bits
    assert world.gate.pause_publisher is world.backpressure.pause_publisher
