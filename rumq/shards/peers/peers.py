"""The other shards: links to them are made, and made anew when one has died. With one shard there are none.

A link that ends is made anew at once. Links that end soon, one after the other, as those of shards that do not
understand each other, are made anew ever later."""
# compiled: warm

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from functools import partial

from rumq.loop.fault_guard import is_told
from rumq.loop.ports import EventSink
from rumq.net.connection import Connection
from rumq.net.kernels import sockets
from rumq.net.pump import Pump
from rumq.net.sockets.fd_passing import FdPassing
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink, LinkRetries
from rumq.shards.bus.dialers import Dialer
from rumq.shards.bus.shared_ring import SharedRing
from rumq.shards.peers.interest import Interest
from rumq.shards.peers.peer import Peer
from rumq.shards.peers.shared_groups import SharedGroups

BUS_BYTES = 4 << 20  # that may be queued for another shard before its readers fall behind


class Peers:
    """The `PeerLinks` of a shard. others: by index, complete before the first link"""

    def __init__(
        self, index: int, others: Mapping[int, Peer], dialer: Dialer | None, events: EventSink,
        retries: LinkRetries, pump: Callable[[], Pump], *, is_draining: Callable[[], bool],
        tally: Callable[[m.Tally], None],
    ) -> None:  # fmt: skip
        """index: of this shard; dialer: None without other shards; tally: takes the statistics of other shards"""
        self._index, self.others = index, others
        self._dialer, self._events, self._retries, self._pump = dialer, events, retries, pump
        self._is_draining, self.tally = is_draining, tally
        self._is_held = False  # True while nothing is read of the others
        if dialer is not None:
            dialer.begin(self._attach, self._leave)

    def say(self, shard: int, message: m.AnyMessage) -> bool:
        """Send a message; False if that shard has not begun."""
        peer = self.others.get(shard)
        return peer is not None and peer.has_begun and peer.say(message)

    def say_all(self, message: m.AnyMessage) -> None:
        """Send a message to every shard that is linked."""
        for peer in self.others.values():
            peer.say(message)

    @property
    def bytes_out(self) -> int:
        """Sent over the links that there are now."""
        return sum(peer.link.transport.bytes_out for peer in self.others.values() if peer.link is not None)

    def is_linked(self, shard: int) -> bool:
        return self.others[shard].link is not None

    # Links

    def dial(self) -> None:
        """Link up with the shards of lower index; those of higher index dial this one."""
        for index in range(self._index):
            self._dial(index)

    def _dial(self, index: int) -> None:
        assert self._dialer is not None
        self._dialer.dial(index)

    def _attach(self, index: int, sock: socket.socket, rest: bytes, ring: SharedRing | None = None) -> None:
        if self._is_held:
            sock.close()  # nothing is read of it, so nothing is to be handed over on it
            return
        peer, pump = self.others[index], self._pump()
        self._read_out(peer)
        connection = Connection(pump, sock, f"shard {index}", BUS_BYTES)
        link = BusLink(connection, peer.received, peer.lost, peer.drained, reader_of(connection), ring)
        self._retries.began(index, link)
        connection.link = link
        pump.add(connection)
        peer.linked(link)
        if rest:
            pump.feed(connection, rest)

    def _read_out(self, peer: Peer) -> None:
        """What came of a run before counts: what it has acknowledged, and what it has shown."""
        if peer.link is not None and not self._is_held:
            self._pump().read_out(peer.link.transport)  # type: ignore[arg-type]

    def _leave(self, index: int) -> None:
        """End the link to a process that is that shard no more."""
        peer = self.others[index]
        self._read_out(peer)
        if peer.link is not None:
            peer.link.end()

    def leave_all(self) -> None:
        """End every link: the others go on with this shard's next leader."""
        for index in self.others:
            self._leave(index)

    def joined(self, shard: int) -> None:
        self._events.tell("shard.linked", shard=shard)

    def lost(self, shard: int, why: str) -> None:
        if self._is_draining():
            return  # all stop, one a little before the other
        wait, times = self._retries.ended(shard)
        if is_told(times):
            self._events.tell("shard.lost", shard=shard, why=why, times=times)
        if shard > self._index:
            return
        if wait:
            self._retries.later(wait, partial(self._dial_again, shard))
        else:
            self._dial(shard)

    def _dial_again(self, shard: int) -> None:
        if not self._is_draining():
            self._dial(shard)

    # A hand-over of this shard

    def hold(self) -> None:
        """Read nothing more of the others: what they publish is left for this shard's successor."""
        self._is_held = True
        for peer in self.others.values():
            if peer.link is not None:
                peer.link.transport.pause_reading()

    def tell_held(self) -> None:
        """Tell the others that the successor has all that was read of them: they hand over the rest again."""
        for peer in self.others.values():
            peer.set_last(True)

    def release(self) -> None:
        """Nothing came of it: say so, and only then read on."""
        self._is_held = False
        for index, peer in self.others.items():
            peer.set_last(False)
            if peer.link is not None:
                peer.link.transport.resume_reading()
            elif index < self._index:
                self._dial(index)

    @property
    def all_known(self) -> bool:
        return all(peer.is_known for peer in self.others.values())

    def end_turn(self) -> None:
        for peer in self.others.values():
            peer.end_turn()

    # Retention

    def trimmable(self) -> list[m.Trimmable]:
        """What each other shard said last of its segments."""
        return [peer.retention.trimmable for peer in self.others.values()]

    def tell_needs(self, wanted_lsn: Callable[[int], int | None]) -> None:
        """Tell each owner which of its records persistent sessions here have not had."""
        for peer in self.others.values():
            peer.tell_needs({p.index: lsn for p in peer.partitions if (lsn := wanted_lsn(p.index)) is not None})

    def wanted_lsn(self, index: int, here: int | None) -> int | None:
        """The first record of a partition of this shard that a persistent session has not had, here (`here`) or in
        another shard; None: all have had all."""
        wanted = [peer.retention.needs[index] for peer in self.others.values() if index in peer.retention.needs]
        return min(wanted if here is None else [*wanted, here], default=None)

    # Shutdown

    def drain(self) -> None:
        """Tell the others that nothing more is published from here."""
        self.say_all(m.Drained())

    @property
    def are_drained(self) -> bool:
        """Whether everything published to others is committed, and they publish nothing more here."""
        return all(
            peer.link is None or (peer.is_drained and not peer.parts.owner.unacknowledged_bytes)
            for peer in self.others.values()
        )

    def close(self) -> None:
        for peer in self.others.values():
            if peer.link is not None:
                peer.link.closed = True


def reader_of(connection: Connection) -> Callable[[bytearray, int], int] | None:
    """Receives the rest of a long message where it is kept, not by way of the pump's buffer."""
    if not connection.is_plain:
        return None
    return lambda buffer, at: sockets.receive(connection.fd, buffer, at, True)


class PeerStage:
    """The other shards' part of a turn: what they wait for is sent at its end."""

    def __init__(self, peers: Peers, interest: Interest, groups: SharedGroups, fd_passing: FdPassing) -> None:
        self._peers, self._groups, self._fd_passing = peers, groups, fd_passing
        self.changes = interest.changes

    def end_turn(self) -> None:
        self._groups.end_turn()
        self._peers.end_turn()
        self._fd_passing.flush()
