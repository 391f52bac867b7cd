"""A shard's process while it leads: its term, its links to other nodes and to the agent of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from rumq.cli.broker.client_connections import HandedOver
from rumq.cli.broker.shard_store import Place
from rumq.cli.node.cluster_connections import open_cluster_listener, relayed_clients
from rumq.cli.node.cluster_place import ClusterPlace
from rumq.cli.node.member_change import MemberChange
from rumq.cluster.agent.messages import SOCKET_NAME, AgentMessage, Claimed, Done, Order, Report
from rumq.cluster.connections.agent_link import AgentHandler, AgentLink, here_of
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.control.records import View
from rumq.cluster.links.frames import encoded
from rumq.mqtt.reasons import Reason
from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.session.connection.listener_policy import ListenerPolicy
from rumq.shards.assembly import Platform, Shard, ShardContext
from rumq.shards.links.admin_callers import AdminCallers
from rumq.shards.links.cluster_links import ClusterLinks
from rumq.shards.links.cluster_listener import Caller, ClusterListener, Expected
from rumq.shards.processes.supervisor import DEPOSED
from rumq.shards.replication.follower_links import connector
from rumq.shards.replication.replication import Replication
from rumq.shards.replication.term import Term
from rumq.shards.turn.fault_guard import ShardEvents
from rumq.shards.turn.scheduler import TimerQueue

REPORT_SECONDS = 1.0
ASK_BYTES_MAX = 1 << 16
HAND_OVER_SECONDS_MAX = 2.0


class Leader:
    """Around a shard that is built with `context` and `platform`."""

    hand_over_seconds_max = HAND_OVER_SECONDS_MAX

    def __init__(self, place: Place, cluster: ClusterPlace, tls: NodeTls | None) -> None:
        """tls: of connections between nodes, None for plain bytes"""
        self._place, self._cluster, self._tls = place, cluster, tls
        self._addresses = HostAddresses()
        self._links: ClusterLinks
        self._agent: AgentLink
        self._listener: ClusterListener
        self._shard: Shard
        self._members: MemberChange
        self._handing_over: list[
            tuple[int, Callable[[Done], object], Callable[[], None]]
        ] = []  # who asked for it
        self._is_leaving = False

    # Before the shard is built

    def context(self, context: ShardContext) -> ShardContext:
        office, cluster = self._cluster.office, self._cluster
        term = Term(
            office.view.cluster, self._place.index, cluster.node, office.lead.epoch, office.lead.record, office.view,
            resolve=self._addresses.maybe_find, end=self._end,
        )  # fmt: skip
        return replace(context, term=term, edge_door=self._place.count)

    def platform(self, platform: Platform) -> Platform:
        return replace(platform, dialer=self._dialer, connect=partial(connector, tls=self._tls))

    def _dialer(self, pump: Callable[[], Pump], timers: TimerQueue, events: ShardEvents) -> ClusterLinks:
        epoch = self._cluster.office.lead.epoch
        self._links = ClusterLinks(self._place.index, epoch, self._addresses, pump, timers, events, self._tls)
        return self._links

    # Once it is built

    @property
    def _replication(self) -> Replication:
        assert self._shard.replication is not None
        return self._shard.replication

    def begin(self, shard: Shard, policies: Mapping[int, ListenerPolicy], take: HandedOver) -> None:
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
            {
                "replica": partial(self._replication.askers.take, shard.pump), "ask": self._take_operator,
                "admin": AdminCallers(
                    shard.pump, shard.admin.answer, office.lead.epoch, shard.timers, shard.events.failed
                ).take,
            }, self._tls,
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
        elif isinstance(message, Order):
            self._carry_out(message, self._agent.say, self._agent.flush)

    def _take_operator(self, caller: Caller) -> None:
        """Somebody at another node has orders."""
        connection = Connection(self._shard.pump, caller.sock, caller.greeting.node, ASK_BYTES_MAX)

        def heard(message: AgentMessage) -> None:
            if isinstance(message, Order):
                self._carry_out(message, lambda done: connection.write(encoded(done)), connection.flush)

        connection.link = AgentHandler(connection, heard, lambda: None)
        self._shard.pump.add(connection)
        if caller.rest:
            self._shard.pump.feed(connection, caller.rest)

    def _carry_out(self, order: Order, say: Callable[[Done], object], flush: Callable[[], None]) -> None:
        def done(why: str) -> None:
            say(Done(order.request, why))

        if order.shard != self._place.index:
            done(f"this is shard {self._place.index}")
        elif order.what == "hand-over":
            self._handing_over.append((order.request, say, flush))
            self._replication.hand_over(order.to, partial(self._not_handed_over, order.request))
        elif order.what == "members":
            self._members.begin(order.members, done)
        else:
            done(f"a leader knows nothing of {order.what}")

    def _not_handed_over(self, request: int, why: str) -> None:
        for number, say, _ in self._handing_over:
            if number == request:
                say(Done(request, why))
        self._handing_over = [each for each in self._handing_over if each[0] != request]

    def _end(self) -> None:
        """Another node leads: end at once, for what is in flight must not be sealed."""
        for request, say, flush in self._handing_over:
            say(Done(request))
            flush()
        if self._handing_over:
            self.dismiss_clients(Reason.ADMINISTRATIVE_ACTION, "another node serves this client from now on")
        elif self._is_leaving:
            self.dismiss_clients(Reason.SERVER_SHUTTING_DOWN, "the node is stopping")
        os._exit(DEPOSED)

    def dismiss_clients(self, reason: Reason, why: str) -> None:
        """Send each client the reason, as far as its socket takes it at once."""
        for connection in list(self._shard.pump.connections.values()):
            if not connection.link.is_bus:
                connection.link.dismiss(reason, why)
                connection.flush()

    def leave(self) -> None:
        """End at once, without a successor: one is chosen."""
        self.dismiss_clients(Reason.SERVER_SHUTTING_DOWN, "the node is stopping")
        os._exit(DEPOSED)

    def _report(self) -> None:
        replication = self._replication
        role = "leader" if replication.is_open else "opening"
        figures = {**replication.figures(), "pid": os.getpid(), "changing": self._members.wanted}
        self._agent.say(Report(self._place.index, role, replication.core.epoch, figures))
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
        self._replication.hand_over(to, lambda why: None)
        return True

    def close(self) -> None:
        self._agent.close()
        self._listener.close()
