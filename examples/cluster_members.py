"""What a cluster on one machine is made of: processes with their ports, logs and data, and etcd's command."""

import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PORTS_FROM, PORTS_UNTIL = (
    12_000,
    32_000,
)  # below what outgoing connections are given, so that a restart finds its own
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class NotStarted(Exception):
    """Says what is missing, or quotes the last words of the process that ended."""


class Place(NamedTuple):
    """Where a member runs. host: its address; before: the command that leads there, such as `ip netns exec`"""

    host: str = "127.0.0.1"
    before: tuple[str, ...] = ()


class Member:
    """An etcd or a node: a process that may die and be started again, with the same command.

    address: what clients are told: "host:port" of a node, the client URL of an etcd"""

    def __init__(self, name: str, command: Sequence[str], address: str, data: Path) -> None:
        self.name, self.command, self.address, self.data = name, list(command), address, data
        self.logs = data.with_suffix(".log")
        self.died_at: float | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def has_ended(self) -> bool:
        return self._process is not None and not self.is_alive

    def start(self) -> None:
        """It dies with the thread that starts it: a cluster leaves nothing behind, however it ends."""
        self.died_at = None
        self.data.mkdir(parents=True, exist_ok=True)
        parent = os.getpid()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("ETCD_", "RUMQ_"))}
        with self.logs.open("ab") as logs:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=logs, stderr=logs, env=environment,
                preexec_fn=lambda: die_with(parent),
            )  # fmt: skip

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self.is_alive:
            os.kill(self.pid, number)

    def end(self, until: float) -> None:
        """Wait for its end; kill it at `until` (monotonic)."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            for pid in reversed(tree(self.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()

    def last_words(self) -> str:
        with self.logs.open("rb") as logs:
            logs.seek(max(0, self.logs.stat().st_size - 2000))
            return logs.read().decode(errors="replace").strip()


class Ports:
    """The first port of each name, the others follow it. Kept in a file: data of a cluster names its ports."""

    def __init__(self, file: Path, counts: dict[str, int]) -> None:
        self.numbers: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
        taken = {port for name, first in self.numbers.items() for port in range(first, first + counts.get(name, 1))}
        for name, count in counts.items():
            if name not in self.numbers:
                self.numbers[name] = first = free_ports(count, taken)
                taken |= set(range(first, first + count))
        file.write_text(json.dumps(self.numbers))


def free_ports(count: int, taken: set[int]) -> int:
    """The first of so many consecutive ports that nobody listens on."""
    for _ in range(1000):
        first = random.randrange(PORTS_FROM, PORTS_UNTIL - count)
        wanted = range(first, first + count)
        if not taken & set(wanted) and all(is_free(port) for port in wanted):
            return first
    raise NotStarted(f"no {count} consecutive ports are free between {PORTS_FROM} and {PORTS_UNTIL}")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def etcd(
    name: str,
    names: Sequence[str],
    ports: Ports,
    data: Path,
    place: Callable[[str], Place],
    settings: Sequence[str],
) -> Member:
    """A member of etcd. Its client port is the first of its two, the peers' the second."""

    def url(of: str, number: int) -> str:
        return f"http://{place(of).host}:{ports.numbers[of] + number}"

    program = shutil.which("etcd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/bin")
    if program is None:
        raise NotStarted("etcd is not installed: apt-get install etcd-server")
    flags = {
        "--name": name, "--data-dir": str(data / name),
        "--listen-client-urls": url(name, 0), "--advertise-client-urls": url(name, 0),
        "--listen-peer-urls": url(name, 1), "--initial-advertise-peer-urls": url(name, 1),
        "--initial-cluster": ",".join(f"{each}={url(each, 1)}" for each in names),
        "--initial-cluster-token": "rumq-example",
    }  # fmt: skip
    command = [*place(name).before, program, *(part for flag in flags.items() for part in flag), *settings]
    return Member(name, command, url(name, 0), data / name)


def ask_etcd(client: str, path: str, body: bytes = b"{}") -> dict[str, Any] | None:
    """An answer of etcd's JSON gateway; None if there is none."""
    try:
        with urllib.request.urlopen(urllib.request.Request(client + path, body), timeout=1) as reply:
            return dict(json.load(reply))
    except (OSError, ValueError):
        return None


def die_with(parent: int) -> None:
    """In a new process, before its program: be killed when the parent ends. prctl(2)"""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def tree(pid: int) -> list[int]:
    """`pid` and all its living descendants."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, task.read_text().split())
    return found
