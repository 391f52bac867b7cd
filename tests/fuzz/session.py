"""A whole broker, over the simulated disk and network: clients whose bytes are nearly right, in pieces of any size.

No client may crash the shard or keep it busy, what any client is sent is packets, and one that does everything right is
served beside them, also after a power loss."""

import gc
from collections import Counter
from random import Random
from typing import Any

from rumq.auth.credentials.authenticator import Authenticator
from rumq.auth.credentials.hashes import scram
from rumq.auth.credentials.scram import Scram
from rumq.auth.rules import File, Rule, RuleSet
from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import FrameReader, frame_at
from rumq.net.connection import Connection
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import ListenerPolicy
from tests.fuzz.campaign import Target, Wrong
from tests.fuzz.corpus import Maker, packets
from tests.fuzz.kernels.mutate import Mutator
from tests.simulation.client import Client
from tests.simulation.history import History
from tests.simulation.machine import Build, Machine
from tests.simulation.network import Stream

BUILD = Build(1, 2, "disk", 0.0, 1 << 16, 1 << 14, 1 << 16)
AT_ONCE = 8
OUTBOX_BYTES = 1 << 16
SCRAM_FIRST = b"n,,n=ann,r=abc"
SCRAM_LAST = b"c=biws,r=abc,p=AAAA"
KEYS = {"ann": scram(b"pencil", bytes(16), 4096)}
RULES = File(
    rule=(
        Rule(allow=("publish", "subscribe", "replay", "retain", "will"), topics=("a/#", "plant/#", "+")),
        Rule(deny=("publish",), topics=("a/b",)),
    )
)


class Sessions(Target):
    name = "session"
    inputs = 120
    slow_seconds = 0.5  # with turns of up to eight other clients in it

    def __init__(self) -> None:
        super().__init__()
        self._openers, self._followers = {}, {}
        for version in (3, 4, 5):
            maker = Maker(Random(version), version)
            connects = [encode(maker.connect(), version) for _ in range(60)]
            if version == 5:
                connects += [asking(maker) for _ in range(20)]
            follow = [encode(maker.from_client(), version) for _ in range(400)] + packets(2, version, 20)
            if version == 5:
                properties: Any = {
                    "authentication_method": "SCRAM-SHA-256",
                    "authentication_data": SCRAM_LAST,
                }
                follow += [encode(p.Auth(reason, properties), 5) for reason in (0x18, 0x18, 0x19)]  # type: ignore[arg-type]
            self._openers[version] = (connects, Mutator(connects, True))
            self._followers[version] = Mutator(follow, True)

    def run(self, seed: int) -> Counter[str]:
        random = Random(seed)
        self.counts: Counter[str] = Counter()
        machine = Machine(BUILD, random, None)
        machine.settle()
        policies = [
            ListenerPolicy(),
            ListenerPolicy(
                0, Authenticator(anonymous=True, enhanced=[Scram(KEYS, bytes(32), bytes)]), rules=RuleSet(RULES)
            ),
            ListenerPolicy(0, limits=Limits(packet_bytes_max=4096, receive_maximum=4, inflight_max=3, maximum_qos=1)),
        ]
        made = [self._input(random) for _ in range(self.inputs)]
        strangers: list[Stranger] = []
        for data in self.each(made):
            strangers.append(self._stranger(machine, data, random.choice(policies), random))
            for _ in range(random.randrange(1, 5)):
                random.choice(strangers).say(random)
                machine.run(random.randrange(1, 40))
            if len(strangers) == AT_ONCE:
                leaving = strangers.pop(random.randrange(AT_ONCE))
                leaving.leave(random)
        for stranger in strangers:
            stranger.leave(random)
        if random.randrange(4) == 0:
            machine.lose_power()
            self.counts["power losses"] += 1
        machine.settle()
        witness(machine)
        for name, count in machine.counts.items():
            self.counts[name] += count
        del machine, strangers
        gc.collect()
        return self.counts

    def _stranger(self, machine: Machine, data: bytes, policy: ListenerPolicy, random: Random) -> "Stranger":
        return Stranger(machine, data, policy, self.counts)

    def _input(self, random: Random) -> bytes:
        """What one client says, from its first byte to its last."""
        version = random.choice((3, 4, 5, 5))
        good, opener = self._openers[version]
        first = random.choice(good) if random.randrange(4) else opener.inputs(1, random.getrandbits(64), 1)[0]
        return bytes(first + self._followers[version].inputs(1, random.getrandbits(64), 8, 3)[0])


def asking(maker: Maker) -> bytes:
    """A CONNECT that wants to show by SCRAM who it is."""
    made: Any = maker.connect()
    properties = {
        **made.properties,
        "authentication_method": "SCRAM-SHA-256",
        "authentication_data": SCRAM_FIRST,
    }
    return encode(p.Connect(made.client_id, 5, made.clean_start, 60, properties=properties), 5)


class Stranger:
    """One connection whose end here says what it was given to say, piece by piece, and reads all answers."""

    def __init__(self, machine: Machine, data: bytes, policy: ListenerPolicy, counts: Counter[str]) -> None:
        self._machine, self._left, self._counts = machine, data, counts
        self._version, self._heard = version_of(data), 0
        self._frames = FrameReader(version=self._version)
        self._ours, theirs = machine.network.pair("stranger", "accepted")
        self._ours.on_data = self._read
        shard = machine.shards[0]
        assert shard is not None
        self._accept(shard, theirs, policy)

    def _accept(self, shard: Any, theirs: Stream, policy: ListenerPolicy) -> None:
        connection = Connection(shard.pump, theirs, "192.0.2.1:7", OUTBOX_BYTES)  # type: ignore[arg-type]
        connection.link = shard.parts.clients.broker.welcome(connection, policy)
        shard.pump.add(connection)

    def say(self, random: Random) -> None:
        size = random.choice((1, 2, 7, 40, len(self._left), len(self._left)))
        some, self._left = self._left[:size], self._left[size:]
        if some:
            try:
                self._ours.send(some)
            except (BlockingIOError, BrokenPipeError):
                self._left = b""

    def leave(self, random: Random) -> None:
        while self._left:
            self.say(random)
        self._machine.run(random.choice((0, 0, 20, 60)))
        self._counts["answered" if self._heard else "not answered"] += 1
        self._ours.close()

    def _read(self, stream: Stream) -> None:
        data = bytes(stream.here)
        if not data:
            return
        stream.recv(len(data))
        self._heard += 1
        if self._version:
            self._frames.receive(data)
            try:
                for frame in self._frames.frames():
                    decode(frame.first_byte, frame.body, self._version)
                    self._counts["packets sent"] += 1
            except MqttFault as fault:
                raise Wrong(f"the broker sent what is no packet: {fault}") from fault


def version_of(data: bytes) -> int:
    """Which the broker takes the client for; 0: none, or it may yet change its mind."""
    try:
        head = frame_at(data, 0, len(data))
        if head is None or sum(head) > len(data):
            return 0
        packet = decode(data[0], data[head[0] : sum(head)], 0)
    except MqttFault:
        return 0
    return packet.version if isinstance(packet, p.Connect) else 0


def witness(machine: Machine) -> None:
    """Somebody who does everything right is served. raises: Wrong"""
    history = History()
    client = Client("witness", 5, history, lambda *what: None, clean=True, lazy=False, window=0)
    ours, theirs = machine.network.pair("witness", "accepted")
    client.connect(ours, 1, clean_start=True, will=None, delay=0.0)
    shard = machine.shards[0]
    assert shard is not None
    shard.accept(theirs, "witness")
    machine.settle()
    if not client.is_up:
        raise Wrong(f"nobody is let in any more: {history.faults}")
    client.subscribe("witness/+", 2)
    machine.settle()
    for qos in (0, 1, 2):
        client.publish("witness/here", qos, retain=False)
    machine.settle()
    assert client.session is not None
    found = [delivery.message for delivery in client.session.deliveries]
    if found != [0, 1, 2] or history.faults:
        raise Wrong(f"of three messages {found} came; {history.faults}")
