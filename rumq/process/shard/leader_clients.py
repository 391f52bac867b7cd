"""The clients of a shard's leader when it loses its term or its majority: who goes along to the next leader, who is
told where else to go, and who is turned away.

It knows nothing of orders and terms: its owner says when."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from rumq.cluster.connections.server_reference import maybe_reference
from rumq.cluster.control.records import View
from rumq.cluster.links.client_moves import MOVED
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.net.connection import Connection
from rumq.net.connection_handover import HandoverState, encode_state
from rumq.process.shard.shard_store import ShardEnvironment
from rumq.session.moves.moved_client import MovedClient, encode_moved
from rumq.session.protocol.connected import Connected
from rumq.shards.assembly.shard import Shard
from rumq.shards.links.cluster_listener import Caller, Taker
from rumq.shards.moves.client_hold import ClientHold
from rumq.shards.moves.relayed_clients import RelayedClients


class LeaderClients:
    """view: the last view of the cluster; take: of `relayed_clients`, what begins a client that an edge relays"""

    def __init__(
        self, shard: Shard, place: ShardEnvironment, view: Callable[[], View], hold: ClientHold, relays: RelayedClients,
        take: Taker,
    ) -> None:  # fmt: skip
        self._shard, self._place, self._view, self._hold = shard, place, view, hold
        self._relays, self._take = relays, take
        self._references = count()  # which of the other nodes is named next

    def take_relayed(self, caller: Caller) -> None:
        """Begin a client that the edge of another node relays, or refuse it while clients are held."""
        if self._hold.is_holding:
            caller.refuse("the shard is handed over")  # its edge tries again
            return
        self._relays.note(caller)
        self._take(caller)

    def maybe_hold(self, to: str) -> ClientHold | None:
        """What holds the clients for another leader; None: that node goes on with no connections."""
        node = self._view().node_of(to)
        return self._hold if node is not None and node.moves else None

    def move(self, epoch: int, *, is_leaving: bool) -> int:
        """Send the clients that are held to the next leader. returns: how many

        epoch: of the term that ends; is_leaving: this node stops, so its edge keeps nobody"""
        if not self._hold.is_holding:
            return 0
        return self._hold.depart(self._place.index, epoch, None if is_leaving else self._give)

    def _give(self, connection: Connection, moved: MovedClient, listener: int) -> None:
        """To this node's edge."""
        doors = self._shard.cluster.fd_passing
        assert doors is not None
        state = connection.handover_state() or encode_state(HandoverState(connection.certificate))
        peer = connection.peer
        doors.give(self._place.count, MOVED, connection.hand_over(), peer, state + encode_moved(moved), listener)

    def dismiss(self, *, is_leaving: bool) -> int:
        """Send everybody away: this process ends. returns: how many clients"""
        if is_leaving:
            return self._dismiss_all(Reason.SERVER_SHUTTING_DOWN, "the node is stopping")
        return self._dismiss_all(Reason.ADMINISTRATIVE_ACTION, "another node serves this client from now on")

    def _dismiss_all(self, reason: Reason, why: str) -> int:
        """Send each client the reason, or where else to go, as far as its socket takes it at once. returns: how many"""
        view, count = self._view(), 0
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

    def quorum_changed(self, has_quorum: bool) -> None:
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
        view = self._view()
        mqtt = [node.mqtt[0] for node in view.nodes if node.id != view.node and node.mqtt]
        reference = mqtt[next(self._references) % len(mqtt)] if mqtt else ""
        return MqttFault(
            "too few copies of the log answer this node",
            Reason.USE_ANOTHER_SERVER if reference else Reason.SERVER_UNAVAILABLE, reference,
        )  # fmt: skip
