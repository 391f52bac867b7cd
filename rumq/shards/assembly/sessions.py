"""Assembly of the sessions of a shard, the journal that they are kept in, and the topics that they bring into being."""

from __future__ import annotations

from dataclasses import dataclass

from rumq.session.connection.pending_acks import AckTracker
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.registry import Registry
from rumq.shards.assembly.base import Base
from rumq.shards.recovery.journal_writer import JournalWriter
from rumq.shards.write_path.new_topic_budget import NewTopicBudget
from rumq.shards.write_path.topic_registry import TopicRegistry
from rumq.shards.write_path.will_publisher import WillPublisher


@dataclass(frozen=True, slots=True)
class SessionParts:
    """budget: of new topics; acks: acknowledgements that wait for the log and the journal"""

    topics: TopicRegistry
    budget: NewTopicBudget
    recorder: JournalRecorder
    registry: Registry
    journal: JournalWriter
    acks: AckTracker


def build_sessions(base: Base) -> SessionParts:
    store, events, router, gathered = base.store, base.events, base.router, base.gathered
    assert store.internal is not None
    topics = TopicRegistry(store, events)
    budget = NewTopicBudget(router.groups, base.clock, base.late.limits)
    wills = WillPublisher(events, base.context.policies, store, gathered.batches, topics, budget.charge_will)
    recorder = JournalRecorder()
    registry = Registry(
        gathered.commands, lambda *w: events.alone("will", lambda: wills.publish_will(*w)), recorder,
        store.release_publishers,
    )  # fmt: skip
    journal = JournalWriter(
        store.internal, store.partitions, recorder, router, registry.sessions.get, base.clock, base.lifecycle,
        base.late.standing,
    )  # fmt: skip
    sources = [partition.ack_source for partition in [*store.partitions, store.internal]]
    acks = AckTracker(sources, journal.flush, base.clock, recorder)
    return SessionParts(topics, budget, recorder, registry, journal, acks)
