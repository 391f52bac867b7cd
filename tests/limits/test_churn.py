"""Of clients that have gone nothing is left: no timer, no cycle that waits for the collector, no memory."""

import gc
import os
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.net.connection import Connection
from rumq.net.listening.transports import PLAIN, ConnectionSetup, MountOptions, Transports
from rumq.net.pump import Pump
from rumq.net.transport.transport_handshake import TransportHandshakes
from rumq.net.websocket.websocket_handshake import WebSocketOptions
from rumq.session.state.deadlines import SWEEP_MIN
from tests.conformance import wire
from tests.conformance.wire import Prop
from tests.faults.shard import Shard
from tests.limits.churn import churn, write_curve, write_table
from tests.limits.conftest import Run
from tests.net.kernels.test_frames import frame
from tests.net.websocket.test_websocket import request

OF_A_CLIENT = {
    "Absence", "Authentication", "Client", "Connected", "Connection", "Deliveries", "DeliveryWindow", "Extras",
    "Handshake", "Incoming", "LoginDetails", "Mount", "MountStream", "PendingAck", "PendingAcks", "PendingLogin",
    "ProxyHandshake", "Reader", "ReplayThrottle", "Session", "SocketStream", "StreamConnection", "Subscriber",
    "TransportHandshake", "WebSocketStream", "Window",
}  # fmt: skip
GROWN_BYTES_MAX = 6 << 20
SECONDS_MAX = 60.0


class House:
    """A shard with a pump, and clients that come by socket pairs."""

    def __init__(self) -> None:
        self.shard = Shard(SimulatedFiles(), pump=Pump)
        self.pump, later = self.shard.parts.pump, self.shard.parts.timers.later
        self.handshakes = TransportHandshakes(self.pump, later=later, event=lambda name, **fields: None)

    def turns(self, count: int) -> None:
        """So many, and in between as many as threads need to come to the end of their work."""
        for _ in range(count):
            self.pump.turn(0.001)
            while any(worker.pending for worker in self.shard.parts.writing.workers):
                self.pump.turn(SECONDS_MAX)

    def client(self, name: str, transports: Transports, end: str, **connect: Any) -> None:
        near, far = socket.socketpair()
        near.setblocking(False)
        welcome = self.shard.parts.clients.broker.welcome
        if transports == PLAIN:
            connection = Connection(self.pump, near, "192.0.2.1:7", 1 << 20)
            connection.link = welcome(connection)
            self.pump.add(connection)
            del connection
        else:
            ConnectionSetup(transports, self.handshakes, self.pump, 1 << 20, welcome).accept(near, "192.0.2.1:7", None)
        is_websocket = transports.websocket is not None
        if is_websocket:
            far.sendall(request())
        for data in (
            wire.connect(name, 5, keep_alive=65_535, **connect),
            wire.subscribe(1, [("a/#", 1)]) + wire.publish("a/b", b"x", 1, 5),
            {"leaves": wire.disconnect(), "breaks": b"\x10\x00"}.get(end, b""),
        ):
            far.sendall(frame(2, data) if is_websocket else data)
            self.turns(5)
        far.close()
        self.turns(4)

    def end(self) -> None:
        self.pump.close()
        self.shard.end()


@pytest.fixture
def house() -> Iterator[House]:
    made = House()
    gc.collect()
    gc.disable()
    yield made
    gc.enable()
    made.end()


def alive() -> Counter[str]:
    return Counter(name for each in gc.get_objects() if (name := type(each).__name__) in OF_A_CLIENT)


@pytest.mark.parametrize("end", ["leaves", "breaks", "is lost"])
@pytest.mark.parametrize(
    "transports",
    [PLAIN, Transports(mount=MountOptions("s/", 1 << 20)), Transports(websocket=WebSocketOptions())],
    ids=["plain", "mount point", "websocket"],
)
def test_nothing_of_a_client_waits_for_the_collector(house: House, transports: Transports, end: str) -> None:
    before = alive()
    for number in range(20):
        house.client(f"c{number}", transports, end)
    assert alive() - before == Counter()
    assert not house.pump.connections


def test_of_a_lasting_session_only_the_session_stays(house: House) -> None:
    before = alive()
    for _ in range(5):
        house.client("c", PLAIN, "leaves", clean=False, properties=[(Prop.SESSION_EXPIRY, 60)])
    assert (alive() - before).keys() <= {"Absence", "Session", "Subscriber", "Reader", "Window"}


def test_a_deadline_goes_with_its_client(house: House) -> None:
    """A keep alive of 18 hours held everything of its client for 27."""
    for number in range(SWEEP_MIN + 100):
        house.client("c", PLAIN, "leaves") if number < 100 else house.shard.parts.clients.broker.welcome(Silent()).end(
            with_will=False
        )
    assert not len(house.shard.parts.clients.broker.keep_alive_monitor)


def test_a_session_that_has_ended_does_not_wait_for_the_time_it_would_have_expired_at(house: House) -> None:
    """Thousands of lasting sessions that were ended by a clean start stayed in memory until then, a day or for ever."""
    before = alive()
    for number in range(20):
        lasting: Any = {"clean": False, "properties": [(Prop.SESSION_EXPIRY, 86_400)]}
        house.client(f"c{number}", PLAIN, "leaves", **lasting)
        house.client(f"c{number}", PLAIN, "is lost", **lasting)
        house.client(f"c{number}", PLAIN, "leaves")
    house.turns(5)
    assert alive() - before == Counter()


class Silent:
    peer = "192.0.2.1:8"

    def close(self) -> None: ...


def forgetful(broker: Any) -> None:
    """Keep none of what it says of its clients: that is the test's memory."""

    class Few(list[Any]):
        def append(self, event: Any) -> None:
            if not event["event"].startswith("client."):
                super().append(event)

    broker.events = Few(broker.events)


@pytest.mark.parametrize(
    "connections", [8_000, pytest.param(1_000_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)
def test_a_churn_of_connections_ends_at_the_memory_it_began_with(run: Run, tmp_path: Path, connections: int) -> None:
    """RUMQ_CHURN_TO: a folder for the table and the curve of its memory."""
    config = tmp_path / "config.toml"
    # What the log keeps of its newest records in memory is a setting, and no client's.
    config.write_text("log.hot_bytes_max = 1_048_576\n")
    broker = run("--config", str(config))
    forgetful(broker)
    churn(broker.address.port, 2_000, broker.memory_bytes)
    found = churn(broker.address.port, connections, broker.memory_bytes)
    folder = Path(os.environ.get("RUMQ_CHURN_TO", tmp_path))
    write_table(found, folder / "churn.csv")
    write_curve(found, folder / "churn.svg")
    grown = found[-1].memory_bytes - found[0].memory_bytes
    assert grown < GROWN_BYTES_MAX, f"{grown >> 20} MiB more after {connections} connections: {found[::20]}"
