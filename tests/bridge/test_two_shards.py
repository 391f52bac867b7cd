"""Whole shards at both ends of a relay, which is cut anywhere, and shards that are killed: each message is there once.

Of QoS 1 too, with the QoS that it had. No process, no socket, no clock: the same steps give the same packets."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.bridge.counts import IN, OUT, RelayCounts
from rumq.bridge.relay import PacketRelay, TargetLimits
from rumq.bridge.side import LOCAL, REMOTE
from rumq.bridge.topic_rules import TopicMap, parse_rule
from rumq.bridge.two_way_relay import TwoWayRelay
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Packet
from tests.conformance import wire
from tests.conformance.replies import decode
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard

RULES = (parse_rule("t/# out 2"),)
SAYS = [(Prop.USER_PROPERTY, ("rumq-qos", "1"))]  # an ordinary publisher: nobody believes it
ASKS = [(Prop.USER_PROPERTY, ("rumq-exactly-once", "")), (Prop.SESSION_EXPIRY, 1_000_000), (Prop.RECEIVE_MAXIMUM, 3)]


class Connection(Client):
    """The bridge's at one shard: its bytes as they are."""

    def take(self) -> list[wire.Packet]:
        """CONNACK alone."""
        lengths = frame_at(self._bytes, 0, len(self._bytes))
        assert lengths is not None
        whole = self.take_bytes(sum(lengths))
        return [decode(whole[0], whole[lengths[0] :], 5)]

    def take_bytes(self, size: int) -> bytes:
        """The next ones, or all where there are fewer."""
        taken = bytes(self._bytes[:size])
        del self._bytes[:size]
        return taken

    @property
    def has_bytes(self) -> bool:
        return bool(self._bytes)


class Output:
    """What the relay has sent to a side, on its way."""

    def __init__(self) -> None:
        self.sent = bytearray()

    @property
    def unsent_bytes(self) -> int:
        return len(self.sent)

    def send(self, packet: Packet) -> None:
        self.sent += encode(packet, 5)

    def send_packets(self, encoded: bytes) -> None:
        self.sent += encoded

    def take_packet(self) -> bytes:
        """The next one; b"": there is none."""
        lengths = frame_at(self.sent, 0, len(self.sent))
        size = sum(lengths) if lengths is not None else 0
        taken = bytes(self.sent[:size])
        del self.sent[:size]
        return taken


@dataclass(frozen=True)
class Step:
    """what: "publish", "read" or "write" packets, "cut" or "kill" a side; size: packets or bytes"""

    what: str
    side: str = LOCAL
    size: int = 1


class World:
    def __init__(self) -> None:
        self.shards = {side: Shard(SimulatedFiles(), segment_bytes_max=1 << 16) for side in (LOCAL, REMOTE)}
        self.published: list[tuple[bytes, int, bool]] = []  # payload, QoS, whether its publisher says another one
        self._connect()
        self.connections[LOCAL].say(wire.subscribe(1, [("t/#", 2 | 4 | 8)]))
        self.connections[LOCAL].take_bytes(1 << 20)  # SUBACK

    def _connect(self) -> None:
        """As bridges do: nothing of the connections before is left."""
        self.connections = {
            side: Connection(shard, "bridge", 5, clean=False, properties=ASKS) for side, shard in self.shards.items()
        }
        self.outputs = {side: Output() for side in self.shards}
        relays = {
            LOCAL: PacketRelay(TopicMap(RULES, OUT), "L", TargetLimits("R"), RelayCounts()),
            REMOTE: PacketRelay(TopicMap(RULES, IN), "R", TargetLimits("L"), RelayCounts()),
        }
        self.relay = TwoWayRelay(relays, {**self.outputs})

    def take(self, step: Step) -> None:
        if step.what == "publish":
            qos, payload = 1 + step.size % 2, b"%d" % len(self.published)
            says = len(self.published) % 2 == 1
            self.published.append((payload, qos, says))
            client = Client(self.shards[LOCAL], "p", 5)
            client.say(wire.publish("t/x", payload, qos, 1, properties=SAYS[:says]))
        elif step.what == "read":
            self.relay.receive(step.side, self.connections[step.side].take_bytes(step.size))
        elif step.what == "write":
            if packet := self.outputs[step.side].take_packet():
                self.connections[step.side].say(packet)
        else:
            if step.what == "kill":
                old = self.shards[step.side]
                files = old.files.after_kill()
                old.end()
                self.shards[step.side] = Shard(files, seed=len(self.published), now_us=old.now_us)
            for side, connection in self.connections.items():
                if step.what == "cut" or side != step.side:
                    connection.link.lost("the network")
                    self.shards[side].settle()
            self._connect()

    def settle(self) -> None:
        while any(c.has_bytes for c in self.connections.values()) or any(o.sent for o in self.outputs.values()):
            for side in (LOCAL, REMOTE):
                self.take(Step("read", side, 1 << 20))
                while self.outputs[side].sent:
                    self.take(Step("write", side))

    def arrived(self) -> list[tuple[bytes, int, bool]]:
        """What the other log has of these messages, with their QoS, and whether what they say of it is there."""
        reader = Client(self.shards[REMOTE], "reader", 5)
        reader.say(wire.subscribe(1, [("t/#", 2)], [(Prop.USER_PROPERTY, ("rumq-from", "earliest"))]))
        found = [each for each in reader.take() if each.kind is Kind.PUBLISH]
        return [(each.payload, each.qos, SAYS[0] in each.properties) for each in found]

    def end(self) -> None:
        for shard in self.shards.values():
            shard.end()


# Once around: what the source sends, to the target, what that answers, to the source.
AROUND = (("read", LOCAL), ("write", REMOTE), ("read", REMOTE), ("write", LOCAL))


@st.composite
def rounds(draw: st.DrawFn) -> list[Step]:
    """A few messages, some moves of packets and of parts of them, and a harm."""
    steps = [Step("publish", size=draw(st.integers(0, 1))) for _ in range(draw(st.integers(0, 3)))]
    sizes = draw(st.lists(st.sampled_from([1, 20, 45, 500]), max_size=14))
    steps += [Step(*AROUND[at % 4], size) for at, size in enumerate(sizes)]
    harm = draw(st.sampled_from(["cut", "cut", "kill", None]))
    return [*steps, Step(harm, draw(st.sampled_from([LOCAL, REMOTE])))] if harm else steps


STEPS = st.lists(rounds(), max_size=6).map(lambda each: [step for some in each for step in some])


@pytest.mark.parametrize("harm", [("cut", LOCAL), ("kill", LOCAL), ("kill", REMOTE)])
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("moves", range(9))
def test_a_message_is_there_once_whatever_ends_at_each_step_of_its_handshake(
    moves: int, qos: int, harm: tuple[str, str]
) -> None:
    steps = [Step(*AROUND[at % 4], 500) for at in range(moves)]
    check([Step("publish", size=qos - 1), *steps, Step(*harm), Step("publish", size=qos - 1)])


@given(STEPS)
@settings(max_examples=40, deadline=None)
def test_each_message_is_there_once_with_its_qos_wherever_it_is_cut(steps: list[Step]) -> None:
    check(steps)


@pytest.mark.long
@given(STEPS)
@settings(max_examples=2_000, deadline=None)
def test_many_times(steps: list[Step]) -> None:
    check(steps)


def check(steps: list[Step]) -> None:
    world = World()
    try:
        for step in steps:
            world.take(step)
        world.settle()
        assert world.arrived() == world.published
    finally:
        world.end()
