"""Links to followers: when they are dialled, and where."""

import errno
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec

from rumq.cluster.control.records import NodeRecord, View
from rumq.cluster.links.greeting import Greeting, GreetingRefused
from rumq.cluster.replication import messages as m
from rumq.loop.scheduler import ShardClock, TimerQueue
from rumq.net.frames import MessageReader, encoded
from rumq.net.pump import Pump
from rumq.net.turn_handler import TurnHandler
from rumq.shards.replication.follower_link import ReplicaLink
from rumq.shards.replication.follower_links import BACKOFF_SECONDS, FollowerLinks, connector
from tests.shards.replication.world import Wire, guard

NODE = NodeRecord(
    id="n1", host="a", port=7000, mqtt=[], zone="", incarnation="", version="", feature_level=1, has_log=True,
    clock_us=0,
)  # fmt: skip
VIEW = View(cluster="c", node="n0", replicas=3, nodes=[NODE], shards=[], is_current=True)


class World:
    """dialled: addresses; refuses: every dial; heard: what the user was told"""

    def __init__(self) -> None:
        self.time = 100.0
        self.clock = ShardClock(lambda: (0, self.time))
        self.timers = TimerQueue(self.clock)
        self.dialled: list[tuple[str, int]] = []
        self.refuses = False
        self.known: dict[str, str] = {"a": "10.0.0.1", "b": "10.0.0.2"}
        self.heard: list[tuple[Any, ...]] = []
        self.events: list[tuple[str, dict[str, Any]]] = []
        events: Any = SimpleNamespace(tell=lambda name, **fields: self.events.append((name, fields)))
        self.links = FollowerLinks(self._connect, self.timers, self.clock, events, self.known.get, self)

    def _connect(self, address: tuple[str, int], peer: str, link_of: Callable[[Any], ReplicaLink]) -> None:
        self.dialled.append(address)
        if self.refuses:
            raise OSError(errno.ECONNREFUSED, "refused")
        self.wire = Wire(peer)
        self.link = link_of(self.wire)

    def after(self, seconds: float) -> None:
        self.time += seconds
        self.clock.tick()
        self.timers.run_due(guard)
        self.timers.run_next_turn(guard)

    def say(self, message: Any) -> None:
        data = encoded(message)
        self.link.receive(data, 0, len(data))

    # The user

    def greeting(self, peer: str) -> Greeting:
        return Greeting("replica", "c", "n0", 2, 5)

    def linked(self, peer: str) -> None:
        self.heard.append(("linked", peer))

    def lost(self, peer: str) -> None:
        self.heard.append(("lost", peer))

    def received(self, peer: str, message: m.ReplicaMessage) -> bool:
        self.heard.append((peer, message))
        return True

    def drained(self, peer: str) -> None:
        self.heard.append(("drained", peer))


def begun() -> World:
    world = World()
    world.links.seen(VIEW, 2)
    world.links.want(["n1"])
    world.after(0.0)
    return world


def test_a_follower_is_dialled_where_its_shard_listens_and_greeted() -> None:
    world = begun()
    assert world.dialled == [("10.0.0.1", 7003)] and world.heard == [("linked", "n1")]
    reader: MessageReader[Greeting] = MessageReader(Greeting)
    assert [each for each, _ in reader.feed(b"".join(world.wire.outbox))] == [world.greeting("n1")]
    world.say(m.Heard(5))
    assert world.heard[-1] == ("n1", m.Heard(5)) and world.events[-1][0] == "cluster.follower_linked"


def test_a_follower_that_refuses_is_dialled_ever_later() -> None:
    world = World()
    world.refuses = True
    world.links.seen(VIEW, 2)
    world.links.want(["n1"])
    for number, seconds in enumerate((*BACKOFF_SECONDS, BACKOFF_SECONDS[-1]), 1):
        assert len(world.dialled) == number
        world.after(seconds - 0.001)
        assert len(world.dialled) == number
        world.after(0.002)
    told = [fields["times"] for name, fields in world.events if name == "cluster.follower_lost"]
    assert told == [1, 2, 4, 8]


def test_the_address_is_that_of_the_newest_view() -> None:
    world = begun()
    world.links.seen(msgspec.structs.replace(VIEW, nodes=[msgspec.structs.replace(NODE, host="b")]), 2)
    world.link.lost("gone")
    world.after(0.1)
    assert world.dialled[-1] == ("10.0.0.2", 7003)
    world.links.seen(msgspec.structs.replace(VIEW, nodes=[]), 2)
    world.link.lost("gone")
    world.after(0.2)
    assert world.dialled[-1] == ("10.0.0.2", 7003), "one whose lease has expired may be there all the same"


def test_a_host_is_dialled_once_its_name_is_looked_up() -> None:
    world = World()
    del world.known["a"]
    world.links.seen(VIEW, 2)
    world.links.want(["n1"])
    world.after(0.1)
    assert not world.dialled
    world.known["a"] = "::1"
    world.after(0.1)
    assert world.dialled == [("::1", 7003)]


def test_who_is_no_member_any_more_is_left() -> None:
    world = begun()
    world.links.want([])
    assert world.wire.is_cut and world.heard[-1] == ("lost", "n1")
    world.after(10.0)
    assert len(world.dialled) == 1


def test_a_refusal_ends_the_link() -> None:
    world = begun()
    world.say(GreetingRefused("this is another shard"))
    assert world.wire.is_cut and world.events[-1][1]["why"] == "this is another shard"


class Turns(TurnHandler):
    """It does nothing."""

    def begin_turn(self) -> float:
        return 0.0

    def end_turn(self) -> None: ...
    def end_quiet_turn(self) -> None: ...
    def drained(self, connection: Any) -> None: ...
    def crashed(self, connection: Any) -> None:
        raise AssertionError

    def failed(self, task: str) -> None:
        raise AssertionError

    def seconds_to_next_deadline(self) -> float:
        return 0.0


def test_what_is_written_while_a_socket_connects_arrives() -> None:
    pump = Pump(Turns())
    lost: list[str] = []
    heard: list[m.ReplicaMessage] = []

    def take(link: ReplicaLink, message: m.ReplicaMessage) -> bool:
        heard.append(message)
        return True

    with socket.create_server(("127.0.0.1", 0)) as listener:
        made: list[ReplicaLink] = []

        def link_of(transport: Any) -> ReplicaLink:
            made.append(ReplicaLink(transport, "n1", take, lambda _, why: lost.append(why), lambda _: None))
            return made[0]

        connector(pump)(listener.getsockname()[:2], "n1", link_of)
        made[0].say(m.Promise(7))
        accepted, _ = listener.accept()
        with accepted:
            accepted.setblocking(False)
            reader: MessageReader[m.ReplicaMessage] = MessageReader(m.ReplicaMessage)
            came: list[m.ReplicaMessage] = []
            for _ in range(100):
                pump.turn(0.1)
                try:
                    came += [message for message, _ in reader.feed(accepted.recv(1 << 16))]
                except BlockingIOError:
                    continue
                break
            assert came == [m.Promise(7)]
            accepted.send(encoded(m.Outdated(8)))
            while not heard:
                pump.turn(1.0)
            assert heard == [m.Outdated(8)]
        while not lost:
            pump.turn(1.0)
    pump.close()
    assert made[0].closed


def test_a_port_on_which_nobody_listens_is_a_lost_link() -> None:
    pump = Pump(Turns())
    lost: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()[:2]

    def link_of(transport: Any) -> ReplicaLink:
        return ReplicaLink(transport, "n1", lambda *_: True, lambda _, why: lost.append(why), lambda _: None)

    try:
        connector(pump)(address, "n1", link_of)
    except ConnectionRefusedError:
        lost.append("refused at once")
    while not lost:
        pump.turn(1.0)
    pump.close()
