"""Which connections are relays, and whether all that an edge has sent is here."""

from __future__ import annotations

import os
import socket
from typing import Any

from rumq.cluster.links.client_moves import EdgeMessage, Held, Hold, Moved, ResumeRelays
from rumq.cluster.links.greeting import Greeting, Taken
from rumq.net.connection import Connection
from rumq.net.connection_handover import CLIENT
from rumq.net.frames import MessageReader, encoded
from rumq.net.listening.transports import continue_handed_over
from rumq.shards.links.cluster_listener import Caller
from rumq.shards.moves.relayed_clients import RelayedClients
from tests.net.site import Echo, Site


class World:
    def __init__(self) -> None:
        self.site = Site()
        self.relays = RelayedClients(self.site.pump)
        self.edge, theirs = pair()
        self.relays.take(Caller(greeting("edge"), theirs, b"", b""))
        assert self.edge.recv(1000) == encoded(Taken())
        self._frames: MessageReader[EdgeMessage] = MessageReader(EdgeMessage)

    def said(self) -> list[Any]:
        """To the edge since the last call."""
        self.site.pump.turn(0.001)
        self.relays.flush()
        try:
            return [(message, bytes(raw)) for message, raw in self._frames.feed(self.edge.recv(1 << 16))]
        except BlockingIOError:
            return []

    def say(self, message: EdgeMessage) -> None:
        self.edge.sendall(encoded(message))
        self.site.pump.turn(0.01)


def pair() -> tuple[socket.socket, socket.socket]:
    made = socket.socketpair()
    for end in made:
        end.setblocking(False)
    return made


def greeting(kind: str, relay: int = 0, edge: str = "e1") -> Greeting:
    return Greeting(kind, "c", "n2#2", 0, 1, edge=edge, relay=relay)


def test_a_client_is_held_once_everything_that_its_edge_sent_is_here() -> None:
    world = World()
    client, sock = pair()
    world.relays.note(Caller(greeting("client", 7), sock, b"", b"abc"))
    connection = Connection(world.site.pump, sock, "10.0.0.1:1", 1000)
    connection.link = Echo(connection)
    world.site.pump.add(connection)
    relayed = world.relays.maybe_relayed(connection)
    assert relayed is not None and world.relays.can_hold(relayed)
    connection.pause_reading()
    world.relays.hold([relayed])
    assert world.said() == [(Hold([7]), b"")] and not world.relays.has_all(relayed, connection, 0)
    world.say(Held({7: 10}))
    client.sendall(b"defg")
    assert not world.relays.has_all(relayed, connection, 0)
    client.sendall(b"hij")
    assert world.relays.has_all(relayed, connection, 0) and connection.unparsed == b"defghij"
    world.relays.move(relayed, 42, b"state")
    assert world.said() == [(Moved(7, 42), b"state")]
    world.relays.resume([relayed])
    assert world.said() == [(ResumeRelays([7]), b"")] and not world.relays.has_all(relayed, connection, 0)
    client.close()
    world.edge.close()
    world.site.end()


def test_a_client_whose_descriptor_alone_is_kept_is_known_by_it_until_another_has_it() -> None:
    world = World()
    pump = world.site.pump
    client, sock = pair()
    fd = sock.fileno()
    world.relays.note(Caller(greeting("client", 7), sock, b"", b""))
    continue_handed_over(pump, CLIENT, sock, "10.0.0.1:1", b"", 1000, Echo)
    connection = next(each for each in pump.connections.values() if each.fd == fd)
    relayed = world.relays.maybe_relayed(connection)
    assert relayed is not None and relayed.number == 7
    other, theirs = pair()
    pump.drop(connection)
    assert world.relays.maybe_relayed(connection) is None, "it has no descriptor any more"
    os.dup2(theirs.fileno(), fd)
    theirs.close()
    follower = Connection(pump, socket.socket(fileno=fd), "10.0.0.2:1", 1000)
    assert world.relays.maybe_relayed(follower) is None
    for each in (client, other, follower.sock, world.edge):
        each.close()
    world.site.end()


def test_nobody_is_held_whose_edge_has_no_link() -> None:
    world = World()
    client, sock = pair()
    world.relays.note(Caller(greeting("client", 7, edge=""), sock, b"", b""))
    connection = Connection(world.site.pump, sock, "10.0.0.1:1", 1000)
    relayed = world.relays.maybe_relayed(connection)
    assert relayed is not None and not world.relays.can_hold(relayed)
    other = Connection(world.site.pump, world.edge, "10.0.0.2:1", 1000)
    assert world.relays.maybe_relayed(other) is None
    client.close()
    sock.close()
    world.edge.close()
    world.site.end()


def test_an_edge_that_has_two_links_is_told_over_the_one_that_is_left() -> None:
    """After a change of members its later relays have a link of their own, of the leader's later epoch."""
    world = World()
    client, sock = pair()
    world.relays.note(Caller(greeting("client", 7), sock, b"", b""))
    connection = Connection(world.site.pump, sock, "10.0.0.1:1", 1000)
    relayed = world.relays.maybe_relayed(connection)
    assert relayed is not None
    later, theirs = pair()
    world.relays.take(Caller(greeting("edge"), theirs, b"", b""))
    later.close()
    world.site.pump.turn(0.01)
    assert world.relays.can_hold(relayed)
    world.relays.hold([relayed])
    assert world.said() == [(Hold([7]), b"")]
    world.edge.close()
    world.site.pump.turn(0.01)
    assert not world.relays.can_hold(relayed)
    client.close()
    sock.close()
    world.site.end()
