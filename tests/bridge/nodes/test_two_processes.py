"""Two processes of one bridge, of which each may believe that it is the one: each message of QoS 2 once and in order.

Brokers are as in `tests.bridge.test_relay`, whose sessions one connection holds at a time: a later CONNECT ends it, and
what the broker had sent on it may still be read. A process that is paused is one that takes no step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.bridge.counts import RelayCounts
from rumq.bridge.relay import Moves, PacketRelay, TargetLimits
from rumq.bridge.side import LOCAL, REMOTE
from rumq.mqtt.packets import Packet, Publish
from tests.bridge.test_relay import RULES, Source, Store

PROCESSES = 2
TAKE_OVER, CONNECT, NOTICE, SUBSCRIBE_SOURCE, SUBSCRIBE_TARGET, FROM_TARGET, FROM_SOURCE = range(7)
ROUNDS = 8  # of what goes well for a while


@dataclass
class Connection:
    """At one broker. to_broker: packets that it has not read; to_bridge: packets that it has sent"""

    to_broker: list[Packet] = field(default_factory=list)
    to_bridge: list[Packet] = field(default_factory=list)


class World:
    """held: by side, the connection of the session there; turn: of whoever has taken the bridge over last"""

    def __init__(self, count: int, source: str) -> None:
        self.sent = [b"%d" % number for number in range(count)]
        self.source, self.store = Source(list(self.sent), 2), Store()
        self.held: dict[str, Connection | None] = {LOCAL: None, REMOTE: None}
        self.source_side, self.turn = source, 0
        self.target_side = LOCAL if source == REMOTE else REMOTE

    def open(self, side: str) -> Connection:
        """CONNECT: the connection before ends, with what the broker had not read of it."""
        if (before := self.held[side]) is not None:
            before.to_broker.clear()
        made = self.held[side] = Connection()
        if side == self.source_side:
            made.to_bridge += self.source.resume()
        return made

    def serve(self, side: str) -> None:
        """The broker reads a packet of the connection that holds the session."""
        held = self.held[side]
        if held is not None and held.to_broker:
            broker = self.source if side == self.source_side else self.store
            held.to_bridge += broker.take(held.to_broker.pop(0))

    def deliver(self) -> None:
        if (held := self.held[self.source_side]) is not None:
            held.to_bridge += self.source.deliver(4)


class Process:
    """looks: it asks, with both connections open, whether it still is the one; False: only before"""

    def __init__(self, world: World, *, looks: bool) -> None:
        self.world, self.looks, self.turn = world, looks, 0
        self.connections: dict[str, Connection] = {}
        self.relay: PacketRelay | None = None

    def step(self, action: int) -> None:
        world = self.world
        if action == TAKE_OVER:
            world.turn += 1
            self.turn = world.turn
            self._end()
        elif action == CONNECT:
            self._connect()
        elif action == NOTICE:  # that one of its connections has ended
            if any(world.held[side] is not each for side, each in self.connections.items()):
                self._end()
        elif action in (SUBSCRIBE_SOURCE, SUBSCRIBE_TARGET):  # on a connection of its own
            self._end()
            world.open(world.source_side if action == SUBSCRIBE_SOURCE else world.target_side)
        elif self.relay is not None:
            self._relay(self.relay, world.source_side if action == FROM_SOURCE else world.target_side)

    def _connect(self) -> None:
        """One step of what `RunningBridge` does: the remote side, the local one, the look."""
        if self.relay is not None or not self.turn:
            return
        if len(self.connections) < 2:
            side = LOCAL if self.connections else REMOTE
            self.connections[side] = self.world.open(side)
        elif self.turn == self.world.turn or not self.looks:
            self.relay = PacketRelay(RULES, "a", TargetLimits("b"), RelayCounts())
        else:
            self._end()

    def _end(self) -> None:
        """Close both: what was sent may still be read by the broker, unless another connection holds the session."""
        self.connections, self.relay = {}, None

    def _relay(self, relay: PacketRelay, side: str) -> None:
        """A packet that has come goes on. One to a connection that has ended goes nowhere."""
        connection = self.connections[side]
        if not connection.to_bridge:
            return
        packet = connection.to_bridge.pop(0)
        moves: Moves
        if side == self.world.target_side:
            moves = relay.answer(packet)
        else:
            moves = relay.publish(packet) if isinstance(packet, Publish) else relay.pubrel(packet)
        for to, packets in ((self.world.source_side, moves.to_source), (self.world.target_side, moves.to_target)):
            if self.world.held[to] is self.connections[to]:
                self.connections[to].to_broker += packets


# What, of which process or broker. Steps and the like of a process: `MORE`.
Happens = tuple[str, int]
MORE = {
    "take over": (TAKE_OVER,),
    "connect": (CONNECT,),
    "notice": (NOTICE,),
    "subscribe": (SUBSCRIBE_SOURCE, SUBSCRIBE_TARGET),
    "from source": (FROM_SOURCE,),
    "from target": (FROM_TARGET,),
    "begin": (TAKE_OVER, CONNECT),
    "go on": (CONNECT, CONNECT),
    "be connected": (TAKE_OVER, CONNECT, CONNECT, CONNECT),
}


def happened(happens: list[Happens], source: str, *, looks: bool = True) -> World:
    """What happens, and then the first process has peace."""
    world = World(12, source)
    processes = [Process(world, looks=looks) for _ in range(PROCESSES)]
    brokers: list[Callable[[], None]] = [world.deliver, lambda: world.serve(LOCAL), lambda: world.serve(REMOTE)]

    def go_well(process: Process, rounds: int) -> None:
        for _ in range(rounds):
            for step in brokers:
                step()
            for action in (FROM_TARGET, FROM_SOURCE):
                process.step(action)

    for what, which in [*happens, ("be connected", 0)]:
        if what == "broker":
            brokers[which]()
        elif what == "relay":
            go_well(processes[which], ROUNDS)
        else:
            for action in MORE[what]:
                processes[which].step(action)
    go_well(processes[0], 400)
    assert not (world.source.waiting or world.source.in_flight), "stuck"
    return world


PROCESS = st.integers(0, PROCESSES - 1)
HAPPENS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["relay", *MORE]), PROCESS),
        st.tuples(st.sampled_from(["begin", "go on", "be connected", "relay"]), PROCESS),
        st.tuples(st.just("broker"), st.integers(0, 2)),
    ),
    max_size=40,
)


@pytest.mark.parametrize("source", [LOCAL, REMOTE])
@given(happens=HAPPENS)
@settings(max_examples=500, deadline=None)
def test_each_message_is_there_once_whichever_process_wakes_up(source: str, happens: list[Happens]) -> None:
    world = happened(happens, source)
    assert world.store.log == world.sent


def test_a_look_before_both_connections_are_open_would_be_too_early() -> None:
    """The first process opens its local connection behind its successor's, and still has old packets of the remote
    broker: a message comes twice. So `RunningBridge` looks behind both."""
    first, second = 0, 1
    happens = [
        ("begin", first), ("broker", 0),  # a message is on its way to the first one
        ("be connected", second), ("relay", second),  # which the second one relays
        ("go on", first), ("from source", first), ("broker", 1),
    ]  # fmt: skip
    assert happened(happens, REMOTE).store.log == happened([], REMOTE).sent
    assert happened(happens, REMOTE, looks=False).store.log.count(b"0") == 2
