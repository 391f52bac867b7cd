"""Assembly of what links a shard to the others, on this node and on other ones, and of where its reads are answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from router.matching.retained import REPLACED_BYTES_MAX
from rumq.loop.read_gate import ReadGate
from rumq.net.client_placement import ClientPlacement
from rumq.net.sockets.fd_passing import FdPassing
from rumq.shards.assembly.base import Base
from rumq.shards.assembly.driver import Driver
from rumq.shards.assembly.sessions import SessionParts
from rumq.shards.assembly.write_path import WriteParts
from rumq.shards.bus.bus_link import LinkRetries
from rumq.shards.bus.dialers import Dialer, PairDialer
from rumq.shards.bus.messages import StartQuestion
from rumq.shards.bus.publish_receiver import PublishReceiver
from rumq.shards.bus.record_forwarder import RemoteSubscriber
from rumq.shards.bus.remote_partition import OwnerShard, RemoteFeeds, RemotePartition, own_partitions
from rumq.shards.bus.shared_ring import ring_bytes
from rumq.shards.delivery.replay_start import SEARCHES, lookups_for
from rumq.shards.peers.interest import Interest
from rumq.shards.peers.peer import Parts, Peer, ThisShard
from rumq.shards.peers.peers import Peers, PeerStage
from rumq.shards.peers.query_client import QueryClient
from rumq.shards.peers.query_server import Found, QueryServer, RestartQueries
from rumq.shards.peers.shared_groups import JournalBarrier, RemoteMembers, SharedGroupHome, SharedGroups

if TYPE_CHECKING:  # a broker alone needs nothing of a cluster
    from rumq.shards.delivery.copy_reads import CopyReads


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """fd_passing: the way to shards of this node, None for the only one; reads: open while this shard may answer

    queries: questions to other shards; copy_reads: of this node's copies of their partitions, None on a node alone
    stage: the part of a turn; None with one shard"""

    fd_passing: FdPassing | None
    placement: ClientPlacement
    reads: ReadGate
    peers: Peers
    interest: Interest
    queries: QueryClient
    shared_groups: SharedGroups
    copy_reads: CopyReads | None
    stage: PeerStage | None


def build_cluster(base: Base, sessions: SessionParts, driver: Driver, writing: WriteParts) -> ClusterParts:
    replication = writing.replication
    # A leader that does not hold the lease of the majority has perhaps been replaced.
    reads = ReadGate(lambda: replication is None or replication.core.holds_lease(base.platform.clock()[1]), base.timers)
    others: dict[int, Peer] = {}
    peers = Peers(
        base.context.index, others, dialer_of(base, driver), base.events, LinkRetries(base.clock, base.timers),
        lambda: driver.pump, is_draining=lambda: writing.commit.is_draining, tally=base.late.tally,
    )  # fmt: skip
    gathered, router, live = base.gathered, base.router, sessions.registry.sessions
    barrier = JournalBarrier(sessions.journal, base.clock, writing.commit.urgent)
    groups = SharedGroups(peers, base.placement, barrier, router, gathered.commands, live)
    interest = Interest(others, router, base.placement, base.timers, groups)
    home = SharedGroupHome(router, gathered.commands, base.timers, barrier, interest)
    feeds = RemoteFeeds(router, live, groups.dropped, sessions.journal, base.timers)
    others |= peers_of(base, sessions, driver, writing, SharedByPeers(reads, peers, groups, interest, home, feeds))
    queries = QueryClient(others, feeds, gathered.commands, interest)
    stage = PeerStage(peers, interest, groups, base.fd_passing) if base.fd_passing is not None else None
    return ClusterParts(
        base.fd_passing, base.placement, reads, peers, interest, queries, groups, copy_reads_of(base, queries), stage
    )


def dialer_of(base: Base, driver: Driver) -> Dialer | None:
    if base.platform.dialer is not None:
        return base.platform.dialer(lambda: driver.pump, base.timers, base.events)
    if base.fd_passing is None:
        return None
    return PairDialer(base.fd_passing, base.context.index, ring_bytes(base.context.count))


def copy_reads_of(base: Base, queries: QueryClient) -> CopyReads | None:
    term, store = base.context.term, base.store
    if term is None:
        return None
    from rumq.shards.delivery.copy_reads import CopiesHere, CopyReads

    copies = CopiesHere(store.files, store.root, term.epoch_elsewhere)
    return CopyReads(store.partitions, copies, base.workers.reader, queries, base.clock, base.events)


@dataclass(frozen=True, slots=True)
class SharedByPeers:
    """What all other shards have in common."""

    reads: ReadGate
    peers: Peers
    groups: SharedGroups
    interest: Interest
    home: SharedGroupHome
    feeds: RemoteFeeds


def peers_of(
    base: Base, sessions: SessionParts, driver: Driver, writing: WriteParts, shared: SharedByPeers
) -> dict[int, Peer]:
    """Each other shard, with what it is to this one."""
    context, store, router, clock = base.context, base.store, base.router, base.clock
    commands, reader, urgent = base.gathered.commands, base.workers.reader, writing.commit.urgent
    admission, quota = writing.admission, writing.retained_quota
    own = own_partitions(store)

    def search_start(question: StartQuestion, done: Callable[[Found | None, BaseException | None], None]) -> None:
        lookups = lookups_for(
            store, router.retained, question.ts_us, question.topic, question.offset, question.retained
        )
        reader.submit(lookups, done, SEARCHES)

    router.retained.replaced_bytes_max = REPLACED_BYTES_MAX
    queries = QueryServer(store, router, reader, base.timers, search_start, base.late.leave_behind, reads=shared.reads)
    restarts = RestartQueries(store, reader, base.timers, base.placement, base.events, urgent)
    here = ThisShard(context.index, base.incarnation, own, router.feeds, admission, quota)
    peers = {}
    for shard in range(context.count):
        if shard == context.index:
            continue
        theirs = [p for p in store.partitions if isinstance(p, RemotePartition) and p.owner == shard]
        parts = Parts(
            OwnerShard(theirs, shared.feeds, commands, admission, quota, sessions.acks.release, driver.tracer),
            PublishReceiver(own, sessions.topics, commands, base.totals, urgent, clock, driver.tracer),
            RemoteSubscriber(shard, own, router.feeds, commands, base.timers),
            RemoteMembers(shard, shared.home), shared.groups, queries, restarts,
        )  # fmt: skip
        peers[shard] = Peer(shard, here, parts, shared.interest, shared.peers, clock)
    return peers
