"""A shard's process while it leads: its term, its links to other nodes and to the agent of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rumq.cli.broker.client_connections import HandedOver
from rumq.cli.broker.shard_store import Place
from rumq.cli.node.cluster_connections import open_cluster_listener, relayed_clients
from rumq.cli.node.cluster_place import ClusterPlace
from rumq.cli.node.member_change import MemberChange
from rumq.cluster.agent.messages import AgentMessage, Claimed, Done, Order, Report
from rumq.cluster.connections.agent_link import SOCKET_NAME, AgentLink, here_of
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.control.records import View
from rumq.net.pump import Pump
from rumq.session.connection.listener_policy import ListenerPolicy
from rumq.shards.assembly import Platform, Shard, ShardContext
from rumq.shards.links.cluster_links import ClusterLinks
from rumq.shards.links.cluster_listener import ClusterListener, Expected
from rumq.shards.processes.supervisor import DEPOSED
from rumq.shards.replication.replication import Replication, Term
from rumq.shards.turn.fault_guard import ShardEvents
from rumq.shards.turn.scheduler import TimerQueue

REPORT_SECONDS = 1.0
HAND_OVER_SECONDS_MAX = 2.0


class Leader:
    """Around a shard that is built with `context` and `platform`."""

    hand_over_seconds_max = HAND_OVER_SECONDS_MAX

    def __init__(self, place: Place, cluster: ClusterPlace) -> None:
        self._place, self._cluster = place, cluster
        self._addresses = HostAddresses()
        self._links: ClusterLinks
        self._agent: AgentLink
        self._listener: ClusterListener
        self._shard: Shard
        self._members: MemberChange

    # Before the shard is built

    def context(self, context: ShardContext) -> ShardContext:
        office, cluster = self._cluster.office, self._cluster
        term = Term(
            office.view.cluster, self._place.index, cluster.node, office.lead.epoch, office.lead.record, office.view,
            resolve=self._addresses.maybe_find, end=partial(os._exit, DEPOSED),
        )  # fmt: skip
        return replace(context, term=term, edge_door=self._place.count)

    def platform(self, platform: Platform) -> Platform:
        return replace(platform, dialer=self._dialer)

    def _dialer(self, pump: Callable[[], Pump], timers: TimerQueue, events: ShardEvents) -> ClusterLinks:
        epoch = self._cluster.office.lead.epoch
        self._links = ClusterLinks(self._place.index, epoch, self._addresses, pump, timers, events)
        return self._links

    # Once it is built

    @property
    def _replication(self) -> Replication:
        assert self._shard.replication is not None
        return self._shard.replication

    def begin(self, shard: Shard, policies: list[ListenerPolicy], take: HandedOver) -> None:
        """Take connections of other nodes, and open the term."""
        self._shard = shard
        office = self._cluster.office
        self._agent = AgentLink(
            shard.pump, f"{self._place.data}/{SOCKET_NAME}", here_of("shard", self._place.index),
            later=shard.timers.later, seen=self._see, heard=self._hear,
        )  # fmt: skip
        self._members = MemberChange(
            self._place.index, self._cluster.state, self._replication, self._agent.say, shard.timers
        )
        office.agent.close()
        self._links.view_changed(office.view)
        expected = Expected(office.view.cluster, self._place.index, office.lead.epoch)
        self._listener = open_cluster_listener(
            shard, self._cluster.listener, expected, relayed_clients(take, policies), self._links,
            {"replica": partial(self._replication.askers.take, shard.pump)},
        )  # fmt: skip
        self._replication.begin()
        self._agent.open()
        self._report()

    def opened(self) -> None:
        """The term is open, so followers hear this process itself."""
        self._cluster.beats.stop()

    # The agent

    def _see(self, view: View) -> None:
        self._links.view_changed(view)
        self._replication.seen(view)
        self._members.seen(view)

    def _hear(self, message: AgentMessage) -> None:
        if isinstance(message, Claimed):
            self._members.claimed(message)
        elif isinstance(message, Order) and message.shard == self._place.index:
            done = partial(self._done, message.request)
            if message.what == "hand-over":
                self._replication.hand_over(message.to, done)
            elif message.what == "members":
                self._members.begin(message.members, done)
            else:
                done(f"a leader knows nothing of {message.what}")

    def _done(self, request: int, why: str) -> None:
        self._agent.say(Done(request, why))

    def _report(self) -> None:
        replication = self._replication
        role = "leader" if replication.is_open else "opening"
        figures = {**replication.figures(), "pid": os.getpid(), "changing": self._members.wanted}
        self._agent.say(Report(self._place.index, role, replication.core.epoch, figures))
        self._shard.timers.later(REPORT_SECONDS, self._report)

    # The end

    def successor(self) -> str | None:
        """A follower that can take over at once; None: there is none."""
        core = self._replication.core
        return next((peer for peer in core.record.replicas if peer != core.node and core.has_all(peer)), None)

    def hand_over(self) -> bool:
        """Before a stop: have another node lead. This process ends when it does; False: no other can."""
        to = self.successor()
        if to is None:
            return False
        self._replication.hand_over(to, lambda why: None)
        return True

    def close(self) -> None:
        self._agent.close()
        self._listener.close()
