"""etcd as processes of a test, on free ports of loopback. Debian: etcd-server."""

import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.peers.peer import free_port

ETCD = shutil.which("etcd")
needs_etcd = pytest.mark.skipif(ETCD is None, reason="etcd is missing (sudo apt-get install etcd-server)")
READY_SECONDS_MAX = 60.0


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on now. etcd cannot choose its own."""
    return [free_port() for _ in range(count)]


class EtcdMember:
    """endpoint: its URL for clients"""

    def __init__(self, command: list[str], endpoint: str, log: Path) -> None:
        self._command, self.endpoint, self._log = command, endpoint, log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {"PATH": os.environ["PATH"], "GOMAXPROCS": "1"}
        with open(self._log, "ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, env=environment)

    def signal(self, number: int) -> None:
        """SIGSTOP and SIGCONT too: it has happened when this returns."""
        assert self.process is not None
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Etcd:
    """members: started; endpoints: their URLs"""

    def __init__(self, folder: Path, count: int = 1, *flags: str, scheme: str = "http") -> None:
        ports = free_ports(2 * count)
        peers = [f"http://127.0.0.1:{port}" for port in ports[count:]]
        self.endpoints = [f"{scheme}://127.0.0.1:{port}" for port in ports[:count]]
        cluster = ",".join(f"m{number}={peer}" for number, peer in enumerate(peers))
        folder.mkdir(parents=True, exist_ok=True)
        self.members = []
        for number, (endpoint, peer) in enumerate(zip(self.endpoints, peers, strict=True)):
            assert ETCD is not None
            command = [
                ETCD, "--name", f"m{number}", "--data-dir", str(folder / f"m{number}"),
                "--listen-client-urls", endpoint, "--advertise-client-urls", endpoint,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", cluster, "--heartbeat-interval", "50", "--election-timeout", "500", *flags,
            ]  # fmt: skip
            self.members.append(EtcdMember(command, endpoint, folder / f"m{number}.log"))
        for member in self.members:
            member.start()

    def wait_ready(self) -> None:
        """Until a member says that it is healthy, which means that there is a leader."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not is_healthy(self.endpoints[0]):
            assert time.monotonic() < deadline, "etcd does not become ready"
            time.sleep(0.05)

    def kill(self) -> None:
        for member in self.members:
            member.kill()


def is_healthy(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(endpoint + "/health", timeout=1.0) as answer:
            return b'"true"' in answer.read()
    except OSError:
        return False


@contextmanager
def running_etcd(folder: Path, count: int = 1, *flags: str) -> Iterator[Etcd]:
    etcd = Etcd(folder, count, *flags)
    try:
        etcd.wait_ready()
        yield etcd
    finally:
        etcd.kill()
