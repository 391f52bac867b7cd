"""A fault of ours in any one callback ends what it was for, is told, and everything else goes on."""

import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.mqtt.reasons import Reason
from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.session.connection.client_state import run_confined
from rumq.session.protocol import subscribe
from rumq.shards.bus.bus_link import BusLink
from tests.conformance import wire
from tests.conformance.replies import decode, frame_size
from tests.conformance.wire import Kind, Packet
from tests.faults.shard import Shard

SECONDS_MAX = 60.0  # without an event: a thread that takes longer fails the test


class Injected(Exception):
    """A bug."""


def fails(*_: Any, **__: Any) -> Any:
    raise Injected


class Breakable(Connection):
    """flush fails once it is broken"""

    is_broken = False

    def flush(self) -> None:
        if self.is_broken:
            raise Injected
        super().flush()


class FailingMeter:
    """In place of a replay's token buckets."""

    @property
    def is_spent(self) -> bool:
        raise Injected


class FailingPolicy:
    """In place of a listener's: a client that ends leaves no quota."""

    @property
    def quotas(self) -> Any:
        raise Injected


class FailingHandler:
    """In place of a link: whatever comes, it fails."""

    def __init__(self, link: Any) -> None:
        self._link = link

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        raise Injected


class Client:
    def __init__(self, house: "House", name: str) -> None:
        self._house = house
        near, self.far = socket.socketpair()
        near.setblocking(False)
        self.far.setblocking(False)
        self.connection = Breakable(house.pump, near, "192.0.2.1:7", 1 << 20)
        self.connection.link = house.shard.parts.clients.broker.welcome(self.connection)
        house.pump.add(self.connection)
        self.heard = b""
        self.is_closed = False
        assert [packet.kind for packet in self.say(wire.connect(name, 5))] == [Kind.CONNACK]

    def say(self, *packets: bytes) -> list[Packet]:
        """What comes of it."""
        self.far.sendall(b"".join(packets))
        return self.take()

    def take(self) -> list[Packet]:
        self._house.turns(10)
        try:
            while more := self.far.recv(1 << 16):
                self.heard += more
            self.is_closed = True
        except BlockingIOError:
            pass
        except OSError:
            self.is_closed = True
        found = []
        while (size := frame_size(self.heard[:5])) is not None and len(self.heard) >= size[1]:
            found.append(decode(self.heard[0], self.heard[size[0] : size[1]], 5))
            self.heard = self.heard[size[1] :]
        return found


class House:
    def __init__(self) -> None:
        self.shard = Shard(SimulatedFiles(), pump=Pump)
        self.pump = self.shard.parts.pump

    def turns(self, count: int) -> None:
        """So many, and in between as many as threads need to come to the end of their work."""
        for _ in range(count):
            self.pump.turn(0.001)
            while any(worker.pending for worker in self.shard.parts.writing.workers):
                self.pump.turn(SECONDS_MAX)

    def still_serves(self, witness: Client) -> None:
        """Somebody who was there before publishes with an acknowledgement and gets it."""
        found = witness.say(wire.publish("w", b"still", 1, 9))
        for _ in range(200):
            if {packet.kind for packet in found} >= {Kind.PUBACK, Kind.PUBLISH}:
                break
            found += witness.take()
        assert {packet.kind for packet in found} >= {Kind.PUBACK, Kind.PUBLISH}, found
        assert not witness.is_closed


@pytest.fixture
def house() -> Iterator[House]:
    made = House()
    yield made
    made.pump.close()
    made.shard.end()


@pytest.fixture
def witness(house: House) -> Client:
    made = Client(house, "witness")
    assert [p.kind for p in made.say(wire.subscribe(1, [("w", 0)]))] == [Kind.SUBACK]
    return made


def of_a_client(name: str, owner: Any, is_its: Callable[[Any], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a method, or a function of a link, fail for one client."""
    right = getattr(owner, name)

    def sometimes(self: Any, *rest: Any, **named: Any) -> Any:
        if is_its(self):
            raise Injected
        return right(self, *rest, **named)

    monkeypatch.setattr(owner, name, sometimes)


CLIENTS: dict[str, Callable[[Client, pytest.MonkeyPatch], None]] = {
    "receive": lambda c, m: setattr(c.connection, "link", FailingHandler(c.connection.link)),
    "flush": lambda c, m: setattr(c.connection, "is_broken", True),
    "request": lambda c, m: of_a_client("subscribe", subscribe, lambda responder: responder is c.connection.link, m),
    "offer": lambda c, m: setattr(c.connection.link.flow, "meter", FailingMeter()),
}


@pytest.mark.parametrize("where", CLIENTS)
def test_a_fault_in_serving_a_client_ends_that_client_alone(
    house: House, witness: Client, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(house, "unlucky")
    if where == "offer":
        client.say(wire.subscribe(1, [("w", 0)]))
    CLIENTS[where](client, monkeypatch)
    client.far.sendall(wire.subscribe(2, [("x", 0)]) + wire.publish("w", b"1", 1, 3))
    house.turns(20)
    client.take()
    assert client.is_closed and client.connection not in house.pump.connections.values()
    assert house.shard.told("client.crashed")
    house.still_serves(witness)


def test_a_fault_in_a_callback_of_a_client_ends_that_client_alone(house: House, witness: Client) -> None:
    for begin in (
        lambda link: link.next_turn(fails),
        lambda link: link.broker.logins.delay_refusal(link.client, partial(run_confined, link, fails)),
        lambda link: link.resume(fails),
    ):
        client = Client(house, "unlucky")
        begin(client.connection.link)
        house.shard.monotonic += 5.0  # a refusal may be held back
        client.take()
        assert client.is_closed
        house.still_serves(witness)


def test_a_fault_in_a_timer_or_a_callback_of_nobody_is_told_and_left_out(house: House, witness: Client) -> None:
    called: list[str] = []
    house.shard.parts.timers.later(0.0, fails)
    house.shard.parts.timers.later(0.0, lambda: called.append("timer"))
    house.shard.parts.timers.next_turn(fails)
    house.shard.parts.timers.next_turn(lambda: called.append("turn"))
    near, far = socket.socketpair()
    house.pump.watch(near.fileno(), lambda: fails(near.recv(1)))
    far.send(b"x")
    house.turns(5)
    house.pump.unwatch(near.fileno())
    assert sorted(called) == ["timer", "turn"]
    told = [fields["task"] for fields in house.shard.told("task.failed")]
    assert sorted(told) == ["next turn", "timer", "watched descriptor"]
    house.still_serves(witness)


def test_a_fault_in_a_job_of_the_reader_or_in_its_end_is_told(house: House, witness: Client) -> None:
    found: list[Any] = []
    reader = house.shard.parts.writing.workers.reader
    reader.submit(fails, lambda result, fault: found.append(fault))
    reader.submit(lambda: 1, lambda result, fault: fails())
    reader.submit(lambda: 2, lambda result, fault: found.append(result))
    while reader.pending:
        house.turns(1)
    assert isinstance(found[0], Injected) and found[1] == 2
    assert [fields["task"] for fields in house.shard.told("task.failed")] == ["rumq-read"]
    house.still_serves(witness)


@pytest.mark.parametrize("times", [1, 2])
def test_a_fault_of_the_writer_loses_nothing_that_is_acknowledged(
    house: House, witness: Client, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and another segment takes the group; twice, and the partition tries again by itself."""
    right, left = SimulatedFiles.write, [times]

    def sometimes(self: Any, *rest: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise MemoryError("injected")
        return right(self, *rest)

    monkeypatch.setattr(SimulatedFiles, "write", sometimes)
    found = witness.say(wire.publish("w", b"still", 1, 9))
    for _ in range(100):
        house.shard.monotonic += 0.1
        found += witness.take()
    assert Kind.PUBACK in {packet.kind for packet in found}
    assert house.shard.told("log.failed", "log.offline")
    house.still_serves(witness)


def test_a_fault_on_the_bus_ends_that_link_alone(house: House, witness: Client) -> None:
    lost: list[str] = []
    near, far = socket.socketpair()
    near.setblocking(False)
    connection = Connection(house.pump, near, "shard 1", 1 << 20)
    connection.link = BusLink(connection, fails, lost.append, lambda: None)
    house.pump.add(connection)
    far.sendall(b"\x04\0\0\0nope")
    house.turns(5)
    assert lost == ["given up"] and house.shard.told("shard.link_failed")
    house.still_serves(witness)


def test_a_fault_in_the_end_of_a_client_ends_nobody_else(house: House, witness: Client) -> None:
    client = Client(house, "unlucky")
    client.connection.link.client.policy = FailingPolicy()
    client.connection.link.broker.next_turn(lambda: client.connection.link.dismiss(Reason.SERVER_BUSY))
    client.far.close()
    house.turns(10)
    assert client.connection not in house.pump.connections.values()
    house.still_serves(witness)
