"""The clients of a leader while its shard is handed over: nothing of them is read or sent, until another leads.

Each is held once nothing is half done for it: no answer waits, no request is under way. Then its session is written
into the journal as it is, to the last message, and the successor has it before it claims. If none takes office, all go
on here and have noticed nothing. Who cannot be held in time keeps its session and loses its connection, as in a
crash."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from rumq.net.connection import Connection
from rumq.session.connection.packet_order import State
from rumq.session.handshake.handshake import Handshake
from rumq.session.moves.moved_client import UNSENT_BYTES_MAX, MovedClient, capture, encode_moved
from rumq.session.protocol.connected import Connected
from rumq.shards.assembly.shard import Shard
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.moves.relayed_clients import Relayed, RelayedClients

MOVING_SECONDS = 30  # the successor keeps a session so long while its connection has not come
QUIET_SECONDS = 10.0  # keep-alive of a client that is held is not enforced for so long

Give = Callable[[Connection, MovedClient, int], None]


class ClientHold:
    """hold until is_settled, note, then either release or depart. is_holding: no client is taken"""

    def __init__(self, shard: Shard, relays: RelayedClients) -> None:
        self._shard, self._relays = shard, relays
        self._registry, self._clock = shard.clients.broker.registry, shard.clock
        self._senders = [each.outgoing for each in shard.store.partitions if isinstance(each, RemotePartition)]
        self._held: dict[Connected, Relayed | None] = {}
        self._was_paused: set[Connected] = set()
        self._noted: list[Connected] = []
        self.is_holding = False

    def hold(self) -> None:
        """Hold everybody who can be held now; to be called again until `is_settled`."""
        if not self.is_holding:
            self.is_holding = True
            self._take_arrivals(False)
        asked = []
        for session in list(self._registry.sessions.values()):
            link = session.link
            if not isinstance(link, Connected) or link in self._held or not can_hold(link):
                continue
            relayed = self._relays.maybe_relayed(transport_of(link))
            if relayed is not None and not self._relays.can_hold(relayed):
                continue
            self._held[link] = relayed
            if transport_of(link).reading_paused and not link.paused:
                self._was_paused.add(link)  # by backpressure, which resumes it
            link.held = True
            link.heard_at = self._clock.monotonic + QUIET_SECONDS
            link.transport.pause_reading()
            link.ensure_active()
            link.acks.barriers += 1  # nothing that is acknowledged meanwhile lets messages out
            link.flow.waits = True
            if relayed is not None:
                asked.append(relayed)
        self._relays.hold(asked)

    def is_settled(self) -> bool:
        """Whether nobody waits for anything any more."""
        if any(sender.pending_bytes for sender in self._senders):
            return False  # what clients published is only here
        has_all = [self._is_settled(link, relayed) for link, relayed in self._held.items()]
        if not all(has_all) or self._has_handshakes():
            return False
        links = (session.link for session in self._registry.sessions.values())
        return all(link is None or link in self._held or not self._may_be_held(link) for link in links)

    def _may_be_held(self, link: object) -> bool:
        if not isinstance(link, Connected) or link.deliveries.withheld:
            return False
        relayed = self._relays.maybe_relayed(transport_of(link))
        return relayed is None or self._relays.can_hold(relayed)

    def _is_settled(self, link: Connected, relayed: Relayed | None) -> bool:
        if link.client.closed:
            return True
        # Whoever counts the bytes of a connection takes them from it, and adds them to its link (`Counters`).
        if relayed is not None and not self._relays.has_all(relayed, transport_of(link), link.bytes_in):
            return False
        acks, wire = link.acks, link.wire
        return not (
            (link.paused and not link.is_metered) or acks.holds or acks.raised or acks.barriers != 1
            or wire.acks or wire.noted
            or (link.reauthentication is not None and link.reauthentication.state is not State.CONNECTED_BY_METHOD)
        )  # fmt: skip

    def note(self) -> None:
        """Write the sessions of those that are settled into the journal."""
        # What comes from other shards is left for the successor, so that all that was shown here gets there.
        self._shard.cluster.peers.hold()
        self._shard.turn.steps.step()
        self._noted = [
            link for link, relayed in self._held.items()
            if not link.client.closed and self._is_settled(link, relayed) and unsent_bytes(link) <= UNSENT_BYTES_MAX
        ]  # fmt: skip
        for link in self._noted:
            # What was read from the log for it counts as delivered: it must leave, whole.
            transport_of(link).disown()
        sessions = [link.session for link in self._noted]
        self._shard.clients.journal.write_moving(sessions, MOVING_SECONDS, self._clock.now_us)

    def tell_noted(self) -> None:
        """The successor has the notes, and all that was read of other shards."""
        self._shard.cluster.peers.tell_held()

    def release(self) -> None:
        """Nothing came of it: all go on here."""
        self.is_holding = False
        for link in self._noted:
            if not link.client.closed and link.session.link is link:
                self._shard.clients.journal.recorder.stays(link.session)
        held, self._held, self._noted = self._held, {}, []
        for link in held:
            if link.client.closed:
                continue
            link.held = False
            link.heard_at = self._clock.monotonic
            acks = link.acks
            acks.barriers -= 1
            if not acks.barriers and not acks.raised:
                acks.released()
            if not link.paused and link not in self._was_paused:
                link.transport.resume_reading()
        self._was_paused.clear()
        self._relays.resume(relayed for relayed in held.values() if relayed is not None)
        self._shard.cluster.peers.release()
        self._take_arrivals(True)

    def depart(self, shard: int, epoch: int, give: Give | None) -> int:
        """Another node leads: give each connection away, to this node's edge or to its own. returns: how many

        give: to this node's edge, with the number of the listener; None: it keeps nobody"""
        count = 0
        for link in self._noted:
            connection, relayed = transport_of(link), self._held[link]
            if link.client.closed or link.session.link is not link or connection.closing or connection.write_failed:
                continue
            if give is None if relayed is None else not self._relays.can_hold(relayed):
                continue
            unsent = b"".join([bytes(data) for data, _ in connection.unsent()])
            moved = capture(link, shard, epoch, bytes(connection.unparsed or b""), unsent)
            link.client.closed = True
            if relayed is None:
                assert give is not None
                give(connection, moved, link.client.policy.index)
            else:
                self._relays.move(relayed, link.bytes_out + connection.bytes_out, encode_moved(moved))
                connection.queue = None
            count += 1
        return count

    def _has_handshakes(self) -> bool:
        """Whether clients are here that are not logged in yet."""
        links = [connection.link for connection in self._shard.pump.connections.values()]
        return any(isinstance(link, Handshake) and not link.client.closed for link in links)

    def _take_arrivals(self, takes: bool) -> None:
        """Take connections of this node's edge, or leave them for whoever follows."""
        doors, pump = self._shard.cluster.fd_passing, self._shard.pump
        if doors is None:
            return
        if takes:
            pump.watch(doors.fd, doors.hear)
        else:
            pump.unwatch(doors.fd)


def transport_of(link: Connected) -> Connection:
    return cast(Connection, link.transport)


def can_hold(link: Connected) -> bool:
    """Whether no messages are on their way to a client outside the ordinary course, or wait for its next connection."""
    deliveries = link.deliveries
    return not (
        link.client.closed or deliveries.connack_pending or deliveries.unsent or link.flow.retained
        or deliveries.withheld
    )  # fmt: skip


def unsent_bytes(link: Connected) -> int:
    return sum([len(data) for data, _ in transport_of(link).unsent()])
