"""docs/guides/reach-a-cluster.md, as it stands: clients that know several nodes find the one that lives."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.peers.peer import free_port
from tests.broker_process import Address
from tests.cli.conftest import rumqd
from tests.interop.conftest import BROKER

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "guides" / "reach-a-cluster.md"
SECONDS_MAX = 60.0
pytestmark = pytest.mark.skipif(BROKER != "rumqd", reason="the page is about rumq")


def block(language: str, broker: Address, dead: int) -> str:
    """The page's block: nobody listens at the first two nodes, the third is the broker."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    for node in ("10.0.0.1", "10.0.0.2"):
        found = re.sub(
            rf'"{node}", (port: )?1883',
            rf'"127.0.0.1", \g<1>{dead}',
            found.replace(f"{node}:1883", f"127.0.0.1:{dead}"),
        )
    found = found.replace("10.0.0.3:1883", f"{broker.host}:{broker.port}")
    return re.sub(r'"10.0.0.3", (port: )?1883', rf'"{broker.host}", \g<1>{broker.port}', found)


@pytest.fixture
def dead() -> Iterator[int]:
    """A port at which nobody listens, and nobody else will."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield int(sock.getsockname()[1])


def reads(command: list[str], broker: Address, topic: str, folder: Path, log: Path) -> None:
    """Start a reader; what is published until it says so has come."""
    with (
        log.open("w") as out,
        subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=folder) as reader,
    ):
        try:
            publish_until(lambda: topic in log.read_text(), broker, topic, log)
        finally:
            reader.kill()


def publish_until(is_there: Callable[[], bool], broker: Address, topic: str, log: Path) -> None:
    until = time.monotonic() + SECONDS_MAX
    while not is_there():
        assert time.monotonic() < until, log.read_text()
        sent = rumqd("pub", "-h", broker.host, "-p", str(broker.port), "-q", "1", "-t", topic, "-m", "on")
        assert sent.status == 0, sent.err


def test_paho(broker: Address, dead: int, tmp_path: Path) -> None:
    script = tmp_path / "reader.py"
    script.write_text(block("python", broker, dead))
    reads([sys.executable, str(script)], broker, "plant/paho", tmp_path, tmp_path / "log")


@pytest.mark.node
@pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None, reason="Node.js and npm are not installed"
)
def test_mqttjs(installed: None, broker: Address, dead: int, tmp_path: Path) -> None:
    script = HERE / f"several-addresses-{os.getpid()}.cjs"  # beside node_modules
    script.write_text(block("js", broker, dead))
    try:
        reads(["node", str(script)], broker, "plant/js", HERE, tmp_path / "log")
    finally:
        script.unlink()


@pytest.mark.skipif(
    shutil.which("mosquitto") is None and not Path("/usr/sbin/mosquitto").exists(),
    reason="mosquitto is not installed",
)
def test_a_bridge_of_mosquitto(broker: Address, dead: int, tmp_path: Path) -> None:
    port = free_port()
    settings = tmp_path / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n{block('conf', broker, dead)}")
    log = tmp_path / "log"
    mosquitto = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    with (
        (tmp_path / "bridge").open("w") as out,
        subprocess.Popen([mosquitto, "-c", str(settings)], stdout=out, stderr=subprocess.STDOUT) as bridge,
    ):
        try:
            command = [
                "stdbuf",
                "-oL",
                "mosquitto_sub",
                "-h",
                "127.0.0.1",
                "-p",
                str(port),
                "-t",
                "plant/bridge",
                "-v",
            ]
            until = time.monotonic() + 20
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert time.monotonic() < until, (tmp_path / "bridge").read_text()
            reads(command, broker, "plant/bridge", tmp_path, log)
        finally:
            bridge.kill()
