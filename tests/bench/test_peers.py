"""Each peer is started with everything it keeps in one folder, which is gone afterwards."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bench.connections import BenchFault
from bench.load.generator import Generator
from bench.load.load import Load
from bench.measure.measure import traffic
from bench.peers import PEERS
from bench.peers.peer import DAEMONS, running, version
from bench.peers.rabbitmq import SERVER
from bench.peers.rumq import RumqBefore
from bench.peers.wire import Wire
from bench.suite.scenarios import SCENARIOS

INSTALLED = {
    "mosquitto": shutil.which("mosquitto", path=os.environ["PATH"] + DAEMONS),
    "nats": shutil.which("nats-server", path=os.environ["PATH"] + DAEMONS),
}
installed = [
    pytest.param(name, marks=pytest.mark.skipif(not path, reason="not installed")) for name, path in INSTALLED.items()
]
# It takes ten seconds to begin.
slow = pytest.param(
    "rabbitmq", marks=[pytest.mark.long, pytest.mark.skipif(not os.path.exists(SERVER), reason="not installed")]
)


class Broken(Wire):
    name = "broken"

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        return ["sh", "-c", "echo this is why; exit 3"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_peer_that_does_not_start_says_why_and_leaves_nothing(own_folder: Path) -> None:
    with pytest.raises(BenchFault, match="this is why"), running(Broken(), Load(publishers=1, subscribers=1)):
        pass
    assert list(own_folder.iterdir()) == []


@pytest.mark.parametrize("name", [*installed, slow])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_peer_delivers_all_that_a_small_load_sends(name: str, qos: int, own_folder: Path) -> None:
    peer = PEERS[name]
    load = Load(publishers=3, subscribers=3, spread="pairs", qos=qos, window=10 if qos else 0)
    if peer.why_not(load):
        pytest.skip(peer.why_not(load))
    with running(peer, load) as broker, Generator(load, broker.address) as generator:
        figures = traffic(*generator.run(200, 20.0))
    assert figures["delivered"] == figures["sent"] == 600
    assert not any(figures[name] for name in ("unacknowledged", "acknowledged_out_of_order", "redelivered"))
    assert list(own_folder.iterdir()) == []


@pytest.mark.parametrize("name", installed)
def test_a_peer_says_its_version(name: str) -> None:
    assert any(digit in version(PEERS[name]) for digit in "0123456789")


def test_rumq_is_durable_in_the_process_for_qos0_and_on_disk_above(tmp_path: Path) -> None:
    settings = {
        scenario.load.qos: PEERS["rumq"].command(scenario.load, tmp_path, 1)[-1]
        for scenario in SCENARIOS.values()
        if not scenario.load.durability
    }
    assert settings == {0: "log.durability=process", 1: "log.durability=disk", 2: "log.durability=disk"}


def test_a_load_may_ask_for_another_durability(tmp_path: Path) -> None:
    load = SCENARIOS["one-at-a-time-process"].load
    assert PEERS["rumq"].command(load, tmp_path, 1)[-1] == "log.durability=process"


def test_another_version_is_the_one_of_its_environment(own_folder: Path) -> None:
    """Neither what the bench adds to the path nor the folder that it runs in hides it."""
    (own_folder / "rumq").mkdir()
    (own_folder / "rumq" / "__init__.py").touch()
    elsewhere = own_folder / "data"
    elsewhere.mkdir()
    before = RumqBefore(Path(sys.executable))
    *start, module, name = before.program(elsewhere)
    assert (module, name) == ("-m", "rumq")
    command = [*start, "-c", "import rumq; print(rumq.__file__)"]
    path = os.environ | {"PYTHONPATH": str(own_folder)}
    said = subprocess.run(command, cwd=own_folder, env=path, capture_output=True, text=True, check=True, timeout=60)
    assert str(own_folder) not in said.stdout
    with running(before, Load(publishers=1, subscribers=1)) as broker:
        assert broker.pid is not None
    assert "rumq" in version(before)
