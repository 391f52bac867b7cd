"""A shard's process while it leads: its term, its links to other nodes and to the agent of its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count

from rumq.cluster.agent.report_filter import ReportFilter
from rumq.cluster.connections.agent_link import AgentHandler, AgentLink, here_of
from rumq.cluster.connections.host_addresses import HostAddresses
from rumq.cluster.connections.last_words import send_last_words
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.connections.server_reference import maybe_reference
from rumq.cluster.control.agent_messages import (
    ORDER_BYTES_MAX,
    SOCKET_NAME,
    AgentMessage,
    Claimed,
    Order,
    OrderResult,
    Report,
)
from rumq.cluster.control.leaders import is_planned
from rumq.cluster.control.records import ShardRecord, View
from rumq.cluster.links.client_moves import MOVED
from rumq.cluster.links.greeting import COPY
from rumq.cluster.replication.quorum import members_of, noted
from rumq.loop.fault_guard import ShardEvents
from rumq.loop.scheduler import TimerQueue
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.net.connection import Connection
from rumq.net.connection_handover import HandoverState, encode_state
from rumq.net.frames import encoded
from rumq.net.pump import Pump
from rumq.process.listeners.client_connections import HandedOver
from rumq.process.shard.cluster_connections import greetings_max, open_cluster_listener, relayed_clients
from rumq.process.shard.cluster_place import ClusterPlace
from rumq.process.shard.member_change import MemberChange
from rumq.process.shard.shard_store import ShardEnvironment
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.moves.moved_client import MovedClient, encode_moved
from rumq.session.protocol.connected import Connected
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.shard import Shard
from rumq.shards.bus.messages import Unwant
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.links.admin_callers import AdminCallers
from rumq.shards.links.cluster_links import ClusterLinks
from rumq.shards.links.cluster_listener import Caller, ClusterListener, Expected
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
ASK_BYTES_MAX = 1 << 16
ASK_SECONDS_MAX = 150.0  # longer than whoever asks waits
OPERATORS_MAX = 64  # connections of other nodes with orders
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
        self._relays: RelayedClients
        self._remote_partitions: list[RemotePartition]
        self._seen: View | None = None  # the last view
        self._hold: ClientHold
        self._handing_over: list[
            tuple[int, Callable[[OrderResult], object], Callable[[], None]]
        ] = []  # who asked for it
        self._operators: set[AgentHandler] = set()  # of other nodes
        self._is_leaving = False
        self._references = count()

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
        self._remote_partitions = [each for each in shard.store.partitions if isinstance(each, RemotePartition)]
        self._relays = RelayedClients(shard.pump)
        self._hold = ClientHold(shard, self._relays)
        assert shard.cluster.fd_passing is not None
        shard.cluster.fd_passing.takers[MOVED] = partial(take, MOVED)
        self._clients = relayed_clients(take, policies)
        office.agent.close()
        self._links.view_changed(office.view)
        expected = Expected(office.view.cluster, self._place.index, self._epochs)
        copies, failed = self._cluster.inquiries.answer(shard.timers.later), shard.events.failed
        self._listener = open_cluster_listener(
            shard, self._cluster.listener, expected, self._take_relayed, self._links,
            {
                "edge": self._relays.take,
                "replica": partial(self._replication.askers.take, shard.pump), "ask": self._take_operator,
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

    def _take_relayed(self, caller: Caller) -> None:
        if self._hold.is_holding:
            caller.refuse("the shard is handed over")  # its edge tries again
            return
        self._relays.note(caller)
        self._clients(caller)

    def _maybe_hold(self, to: str) -> ClientHold | None:
        """What holds the clients for another leader; None: that node goes on with no connections."""
        node = self._view.node_of(to)
        return self._hold if node is not None and node.moves else None

    @property
    def _view(self) -> View:
        return self._agent.view or self._cluster.office.view

    def _give(self, connection: Connection, moved: MovedClient, listener: int) -> None:
        """To this node's edge."""
        doors = self._shard.cluster.fd_passing
        assert doors is not None
        state = connection.handover_state() or encode_state(HandoverState(connection.certificate))
        peer = connection.peer
        doors.give(self._place.count, MOVED, connection.hand_over(), peer, state + encode_moved(moved), listener)

    # The agent

    def _see(self, view: View) -> None:
        if self._cluster.state.note_restored(view.restored):
            self._replication.depose("this machine was set back to an earlier state while it ran")
            return
        for each in self._remote_partitions:
            if is_planned(self._seen, view, each.owner):
                each.outgoing.has_shown_none = True
        self._seen = view
        self._reports.forget()  # an agent that was started again shows its view first
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
        if len(self._operators) >= OPERATORS_MAX:
            caller.refuse(f"{OPERATORS_MAX} orders of other nodes are under way: ask again")
            return
        connection = Connection(self._shard.pump, caller.sock, caller.greeting.node, ASK_BYTES_MAX)

        def heard(message: AgentMessage) -> None:
            if isinstance(message, Order):
                self._carry_out(message, lambda done: connection.write(encoded(done)), connection.flush)

        handler = connection.link = AgentHandler(
            connection, heard, lambda: self._operators.discard(handler), ORDER_BYTES_MAX
        )
        self._operators.add(handler)
        self._shard.timers.later(ASK_SECONDS_MAX, lambda: None if handler.closed else handler.end())
        self._shard.pump.add(connection)
        if caller.rest:
            self._shard.pump.feed(connection, caller.rest)

    def _carry_out(self, order: Order, say: Callable[[OrderResult], object], flush: Callable[[], None]) -> None:
        def done(why: str) -> None:
            say(OrderResult(order.request, why))

        if order.shard != self._place.index:
            done(f"this is shard {self._place.index}")
        elif order.what == "hand-over":
            self._handing_over.append((order.request, say, flush))
            self._replication.succession.hand_over(
                order.to, partial(self._not_handed_over, order.request), self._maybe_hold(order.to)
            )
        elif order.what == "members":
            self._members.begin(order.members, done)
        else:
            done(f"a leader knows nothing of {order.what}")

    def _not_handed_over(self, request: int, why: str) -> None:
        for number, say, _ in self._handing_over:
            if number == request:
                say(OrderResult(request, why))
        self._handing_over = [each for each in self._handing_over if each[0] != request]

    def _end(self) -> None:
        """Another node leads: end at once, for what is in flight must not be sealed."""
        for request, say, flush in self._handing_over:
            say(OrderResult(request))
            flush()
        if self._handing_over or self._is_leaving:
            moved = 0
            if self._hold.is_holding:
                # The edge of a node that is stopping keeps nobody.
                give = None if self._is_leaving else self._give
                moved = self._hold.depart(self._place.index, self._replication.core.epoch, give)
            dismissed = self._dismiss()
            self._shard.events.tell(
                "cluster.clients_moved", shard=self._place.index, clients=moved, dismissed=dismissed
            )
        self._exit()

    def _dismiss(self) -> int:
        if self._is_leaving:
            return self.dismiss_clients(Reason.SERVER_SHUTTING_DOWN, "the node is stopping")
        return self.dismiss_clients(Reason.ADMINISTRATIVE_ACTION, "another node serves this client from now on")

    def dismiss_clients(self, reason: Reason, why: str) -> int:
        """Send each client the reason, or where else to go, as far as its socket takes it at once. returns: how many"""
        view, count = self._view, 0
        for connection in list(self._shard.pump.connections.values()):
            link = connection.link
            if isinstance(link, Connected) and not link.client.closed:
                reference = maybe_reference(view, view.node, link.client_id) or ""
                link.dismiss(Reason.USE_ANOTHER_SERVER if reference else reason, why, reference)
                connection.flush()
                count += 1
            elif not link.is_bus:
                link.dismiss(reason, why)
                connection.flush()
        return count

    def _quorum_changed(self, has_quorum: bool) -> None:
        """Without a majority this leader serves nobody: its clients may be served elsewhere, and here they wait in
        vain."""
        gate = self._shard.clients.logins.gate
        if has_quorum:
            gate.isolated = None
            return
        gate.isolated = self._isolation
        clients = 0
        for connection in list(self._shard.pump.connections.values()):
            link = connection.link
            if isinstance(link, Connected):
                fault = self._isolation()
                reason = fault.reason if fault.server_reference else Reason.SERVER_BUSY  # MQTT 5.0, 3.14.2.1
                link.dismiss(reason, fault.message, fault.server_reference)
                connection.flush()
                clients += 1
        if clients:
            self._shard.events.tell("cluster.clients_sent_away", shard=self._place.index, clients=clients)

    def _isolation(self) -> MqttFault:
        """What a client is told: one node after the other, for this one cannot know which of them is better placed."""
        mqtt = [node.mqtt[0] for node in self._view.nodes if node.id != self._cluster.node and node.mqtt]
        reference = mqtt[next(self._references) % len(mqtt)] if mqtt else ""
        return MqttFault(
            "too few copies of the log answer this node",
            Reason.USE_ANOTHER_SERVER if reference else Reason.SERVER_UNAVAILABLE, reference,
        )  # fmt: skip

    def leave(self) -> None:
        """End at once, without a successor: one is chosen."""
        self._dismiss()
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
        self._replication.succession.hand_over(to, lambda why: None, self._maybe_hold(to))
        return True

    def close(self) -> None:
        self._agent.close()
        self._listener.close()
