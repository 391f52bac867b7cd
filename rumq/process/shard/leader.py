"""A shard's process while it leads: its term, its links to other nodes and to the agent of its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from rumq.cluster.connections.agent_link import AgentLink, here_of
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.connections.last_words import send_last_words
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.connections.report_filter import ReportFilter
from rumq.cluster.control.agent_messages import (
    SOCKET_NAME,
    AgentMessage,
    Claimed,
    Order,
    Report,
)
from rumq.cluster.control.records import ShardRecord, View
from rumq.cluster.links.client_moves import MOVED
from rumq.cluster.links.greeting import COPY
from rumq.cluster.replication.quorum import members_of, noted
from rumq.loop.fault_guard import ShardEvents
from rumq.loop.scheduler import TimerQueue
from rumq.net.pump import Pump
from rumq.process.listeners.client_connections import HandedOver
from rumq.process.shard.cluster_connections import greetings_max, open_cluster_listener, relayed_clients
from rumq.process.shard.cluster_place import ClusterPlace
from rumq.process.shard.leader_clients import LeaderClients
from rumq.process.shard.leader_orders import LeaderOrders
from rumq.process.shard.member_change import MemberChange
from rumq.process.shard.shard_store import ShardEnvironment
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.shard import Shard
from rumq.shards.bus.messages import Unwant
from rumq.shards.links.admin_callers import AdminCallers
from rumq.shards.links.cluster_links import ClusterLinks
from rumq.shards.links.cluster_listener import ClusterListener, Expected
from rumq.shards.links.relay_callers import RelayCallers
from rumq.shards.moves.arrivals import continue_moved
from rumq.shards.moves.client_hold import ClientHold
from rumq.shards.moves.relayed_clients import RelayedClients
from rumq.shards.replication.follower_links import connector
from rumq.shards.replication.replication import Replication
from rumq.shards.replication.term import Term
from rumq.supervision.supervisor import DEPOSED

REPORT_SECONDS = 1.0
TOUCH_SECONDS = 0.5
HAND_OVER_SECONDS_MAX = 2.0
LAST_WORDS_SECONDS_MAX = 0.5
MISSING_SECONDS = 1.0  # for leaders of other shards, which mostly take office in as long after a node has died


class Leader:
    """Around a shard that is built with `context` and `platform`."""

    hand_over_seconds_max = HAND_OVER_SECONDS_MAX

    def __init__(self, place: ShardEnvironment, cluster: ClusterPlace, tls: NodeTls | None) -> None:
        """tls: of connections between nodes, None for plain bytes"""
        self._place, self._cluster, self._tls = place, cluster, tls
        self._addresses = HostAddresses()
        self._links: ClusterLinks
        self._agent: AgentLink
        self._listener: ClusterListener
        self._shard: Shard
        self._members: MemberChange
        self._reports = ReportFilter()
        self._clients: LeaderClients
        self._orders: LeaderOrders
        self._is_leaving = False  # True once this node stops and another one is to lead

    # Before the shard is built

    def context(self, context: ShardContext) -> ShardContext:
        office, cluster = self._cluster.office, self._cluster
        term = Term(
            office.view.cluster, self._place.index, cluster.node, office.lead.epoch, office.lead.record, office.view,
            resolve=self._addresses.maybe_find, end=self._end, quorum=self._quorum_changed,
            fenced=self._note_fenced, doubted=lambda why: cluster.state.distrust(), noted=cluster.state.note_copies,
            epoch_elsewhere=self._epoch_elsewhere,
        )  # fmt: skip
        return replace(context, term=term, edge_door=self._place.count, missing_seconds=MISSING_SECONDS)

    def _quorum_changed(self, has_quorum: bool) -> None:
        self._clients.quorum_changed(has_quorum)

    def _epoch_elsewhere(self, shard: int) -> int:
        return self._links.epoch_elsewhere(shard)

    def _note_fenced(self, record: ShardRecord) -> None:
        """Majorities have promised the term of this record: this node's log is its log."""
        self._cluster.state.open(record.epoch, record.term, noted(members_of(record, record.epoch)))

    def platform(self, platform: Platform) -> Platform:
        return replace(platform, dialer=self._dialer, connect=partial(connector, tls=self._tls))

    def _dialer(self, pump: Callable[[], Pump], timers: TimerQueue, events: ShardEvents) -> ClusterLinks:
        index = self._place.index
        self._links = ClusterLinks(index, self._epoch, self._addresses, pump, timers, events, self._tls)
        return self._links

    # Once it is built

    @property
    def _replication(self) -> Replication:
        assert self._shard.writing.replication is not None
        return self._shard.writing.replication

    def _epoch(self) -> int:
        """Of the term now: each change of members raises it."""
        return self._replication.core.epoch

    def _epochs(self) -> range:
        """From the one in which this process took office to the running one."""
        return range(self._cluster.office.lead.epoch, self._epoch() + 1)

    def begin(self, shard: Shard, policies: Mapping[int, ListenerPolicy], take: HandedOver) -> None:
        """Take connections of other nodes, and open the term."""
        self._shard = shard
        office = self._cluster.office
        self._agent = AgentLink(
            shard.pump, f"{self._place.data}/{SOCKET_NAME}", here_of("shard", self._place.index),
            later=shard.timers.later, seen=self._see, heard=self._hear, tell=shard.events.tell,
        )  # fmt: skip
        self._members = MemberChange(
            self._place.index, self._cluster.state, self._replication, self._agent.say, shard.timers
        )
        relays = RelayedClients(shard.pump)
        self._clients = LeaderClients(
            shard, self._place, lambda: self._view, ClientHold(shard, relays), relays, relayed_clients(take, policies)
        )
        self._orders = LeaderOrders(
            self._place.index, shard, self._replication.succession, self._members, self._clients.maybe_hold
        )
        assert shard.cluster.fd_passing is not None
        shard.cluster.fd_passing.takers[MOVED] = partial(take, MOVED)
        office.agent.close()
        self._links.view_changed(office.view)
        expected = Expected(office.view.cluster, self._place.index, self._epochs)
        copies, failed = self._cluster.inquiries.answer(shard.timers.later), shard.events.failed
        self._listener = open_cluster_listener(
            shard, self._cluster.listener, expected, self._clients.take_relayed, self._links,
            {
                "edge": relays.take,
                "replica": partial(self._replication.askers.take, shard.pump), "ask": self._orders.take_operator,
                COPY: AdminCallers(shard.pump, copies, self._epoch, shard.timers, failed).take,
                "admin": AdminCallers(shard.pump, shard.operation.admin.answer, self._epoch, shard.timers, failed).take,
                "relay": RelayCallers(
                    shard.pump, self._addresses, shard.timers, lambda: self._links.view, self._tls
                ).take,
            }, self._tls, greetings_max(),
        )  # fmt: skip
        self._replication.begin()
        self._agent.open()
        self._report()
        self._touch_links()

    def _touch_links(self) -> None:
        """Say something to the other shards, so that a link over a cut path is noticed though nobody uses it."""
        self._shard.cluster.peers.say_all(Unwant([]))
        self._shard.timers.later(TOUCH_SECONDS, self._touch_links)

    def opened(self) -> None:
        """The term is open, so followers hear this process itself."""
        self._cluster.beats.stop()

    # Clients

    def take_moved(
        self, shard: Shard, outbox_bytes_max: int, sock: socket.socket, peer: str, data: bytes, policy: ListenerPolicy
    ) -> None:
        """Go on with a client of the leader before."""
        continue_moved(shard, policy, sock, peer, data, outbox_bytes_max)

    @property
    def _view(self) -> View:
        return self._agent.view or self._cluster.office.view

    # The agent

    def _see(self, view: View) -> None:
        if self._cluster.state.note_restored(view.restored):
            self._replication.depose("this machine was set back to an earlier state while it ran")
            return
        self._reports.forget()  # an agent that was started again shows its view first
        self._links.view_changed(view)
        self._replication.seen(view)
        self._members.seen(view)

    def _hear(self, message: AgentMessage) -> None:
        if isinstance(message, Claimed):
            self._members.claimed(message)
        elif isinstance(message, Order):
            self._orders.carry_out(message, self._agent.say, self._agent.flush)

    def _end(self) -> None:
        """Another node leads: end at once, for what is in flight must not be sealed."""
        if self._orders.answer_hand_overs() or self._is_leaving:
            moved = self._clients.move(self._replication.core.epoch, is_leaving=self._is_leaving)
            dismissed = self._clients.dismiss(is_leaving=self._is_leaving)
            self._shard.events.tell(
                "cluster.clients_moved", shard=self._place.index, clients=moved, dismissed=dismissed
            )
        self._exit()

    def leave(self) -> None:
        """End at once, without a successor: one is chosen."""
        self._clients.dismiss(is_leaving=self._is_leaving)
        self._exit()

    def _exit(self) -> None:
        doors = self._shard.cluster.fd_passing
        assert doors is not None
        doors.flush_within(LAST_WORDS_SECONDS_MAX)
        send_last_words(self._shard.pump, LAST_WORDS_SECONDS_MAX)
        os._exit(DEPOSED)

    def _report(self) -> None:
        replication = self._replication
        role = "leader" if replication.is_open else "opening"
        figures = {**replication.figures(), "pid": os.getpid(), "changing": self._members.wanted}
        report = Report(self._place.index, role, replication.core.epoch, figures)
        if self._reports.wants(report) and not self._agent.say(report):
            self._reports.forget()
        self._shard.timers.later(REPORT_SECONDS, self._report)

    # The end

    def successor(self) -> str | None:
        """The replica that lacks least, of those that are part of the term; None: there is none."""
        core = self._replication.core
        behind = {peer: lacks for peer, lacks in core.behind().items() if lacks is not None}
        voters = [peer for peer in core.record.replicas if peer in behind]
        return min(voters, key=lambda peer: behind[peer], default=None)

    def hand_over(self) -> bool:
        """Before a stop: have another node lead. This process ends when it does; False: no other can."""
        to = self.successor()
        if to is None:
            return False
        self._is_leaving = True
        self._replication.succession.hand_over(to, lambda why: None, self._clients.maybe_hold(to))
        return True

    def close(self) -> None:
        self._agent.close()
        self._listener.close()
