"""Assembly of the bus: the parts of each other shard, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from commitlog import Store
from router.retained import REPLACED_BYTES_MAX
from router.shard import Shard
from rumq.net.pump import Pump
from rumq.session.state.session import Session
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.bus.bus_link import LinkRetries
from rumq.shards.bus.interest import Interest
from rumq.shards.bus.messages import FindStart, Tally
from rumq.shards.bus.peer import Parts, Peer, ThisShard
from rumq.shards.bus.peers import Peers
from rumq.shards.bus.publish_receiver import PublishReceiver, TopicNumbers
from rumq.shards.bus.query_client import QueryClient
from rumq.shards.bus.query_server import Found, QueryServer, RestartQueries
from rumq.shards.bus.record_forwarder import RemoteSubscriber
from rumq.shards.bus.remote_partition import (
    Admission,
    Owner,
    Quota,
    RemoteFeeds,
    RemotePartition,
    own_partitions,
)
from rumq.shards.bus.shared_groups import (
    Journal,
    JournalBarrier,
    RemoteMembers,
    SharedGroupHome,
    SharedGroups,
)
from rumq.shards.delivery.replay_start import SEARCHES, lookups_for
from rumq.shards.links.dialers import Dialer
from rumq.shards.turn.ports import Clock, CommandQueue, EventSink, FaultGuard, Placement, ReadPool, Timers
from rumq.shards.turn.read_gate import ReadGate
from rumq.tracing.tracer import Tracer


class Bus(NamedTuple):
    peers: Peers
    interest: Interest
    queries: QueryClient
    shared_groups: SharedGroups


def build_bus(
    *, clock: Clock, timers: Timers, commands: CommandQueue, events: EventSink, guard: FaultGuard,
    placement: Placement, reader: ReadPool, store: Store, router: Shard, sessions: Mapping[str, Session],
    journal: Journal, totals: ShardTotals, topics: TopicNumbers, admission: Admission, quota: Quota,
    urgent: Callable[[int], None], acknowledged: Callable[[int], None],
    leave_behind: Callable[[int, int, Callable[[], None]], None], dialer: Dialer | None, pump: Callable[[], Pump],
    is_draining: Callable[[], bool], tally: Callable[[Tally], None], count: int, incarnation: int, tracer: Tracer,
    reads: ReadGate,
) -> Bus:  # fmt: skip
    """urgent: somebody waits until a partition is committed; acknowledged: records published to a partition of another
    shard are committed there; leave_behind: counts what readers here lose of a partition below an lsn"""
    index = placement.index
    own = own_partitions(store)
    others: dict[int, Peer] = {}

    def search_start(question: FindStart, done: Callable[[Found | None, BaseException | None], None]) -> None:
        lookups = lookups_for(
            store, router.retained, question.ts_us, question.topic, question.offset, question.retained
        )
        reader.submit(lookups, done, SEARCHES)

    router.retained.replaced_bytes_max = REPLACED_BYTES_MAX
    retries = LinkRetries(clock, timers)
    peers = Peers(index, others, dialer, events, retries, pump, is_draining=is_draining, tally=tally)
    barrier = JournalBarrier(journal, clock, urgent)
    groups = SharedGroups(peers, placement, barrier, router, commands, sessions)
    interest = Interest(others, router, placement, timers, groups)
    home = SharedGroupHome(router, commands, timers, barrier, interest)
    feeds = RemoteFeeds(router, sessions)
    queries = QueryServer(store, router, reader, timers, search_start, leave_behind, reads=reads)
    restarts = RestartQueries(store, reader, timers, placement, guard, urgent)
    here = ThisShard(index, incarnation, own, router.feeds, admission, quota)
    for shard in range(count):
        if shard == index:
            continue
        theirs = [p for p in store.partitions if isinstance(p, RemotePartition) and p.owner == shard]
        parts = Parts(
            Owner(theirs, feeds, commands, admission, quota, acknowledged, tracer),
            PublishReceiver(own, topics, commands, totals, urgent, clock, tracer),
            RemoteSubscriber(shard, own, router.feeds, commands, timers),
            RemoteMembers(shard, home), groups, queries, restarts,
        )  # fmt: skip
        others[shard] = Peer(shard, here, parts, interest, peers, clock)
    return Bus(peers, interest, QueryClient(others, feeds, commands, interest), groups)
