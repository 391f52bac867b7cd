"""A real broker for clients that nobody here wrote."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Rumqd:
    """A rumqd process on a data directory; can be killed and started again."""

    def __init__(self, data: Path, *flags: str) -> None:
        self.data, self.flags = data, flags
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "rumq", "run", "--host", "127.0.0.1", "--port", str(self.port)]
        with open(self.data.with_suffix(".log"), "ab") as log:
            self.process = subprocess.Popen([*command, "--data", str(self.data), *self.flags], stderr=log)
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self.process.poll() is None, "rumqd did not start"
                assert time.monotonic() < deadline, "rumqd does not accept"
                time.sleep(0.01)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(30)


@pytest.fixture(scope="session")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a broker that all tests share; RUMQ_TEST_ADDRESS=host:port uses one that runs."""
    if address := os.environ.get("RUMQ_TEST_ADDRESS"):
        yield int(address.rpartition(":")[2])
        return
    broker = Rumqd(tmp_path_factory.mktemp("broker") / "data")
    broker.start()
    yield broker.port
    broker.stop()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Rumqd]:
    """A broker of the test's own, not started yet."""
    broker = Rumqd(tmp_path / "data")
    yield broker
    if broker.process is not None and broker.process.poll() is None:
        broker.stop()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that no other test uses."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return f"interop/{request.module.__name__.rpartition('.')[2]}/{name}"
