"""The bench kills a broker while messages wait for a session, and checks every message that comes afterwards."""

from pathlib import Path
from typing import Any

import pytest

from bench.connections import BenchFault
from bench.measure import redelivery
from bench.measure.measure import measure
from bench.peers.mosquitto import Mosquitto
from bench.peers.peer import Broker, running
from bench.peers.rumq import Rumq
from bench.suite.scenarios import SCENARIOS


@pytest.fixture(autouse=True)
def few_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redelivery, "MESSAGES", 2_000)
    monkeypatch.setattr(redelivery, "SAVED_S", 0.0)


@pytest.mark.parametrize("key", ["redelivery-qos1", "redelivery-qos2-100"])
def test_a_killed_broker_delivers_all_that_waited_once(key: str) -> None:
    scenario = SCENARIOS[key]
    with running(Rumq(), scenario.load) as broker:
        figures = measure(scenario, broker, 1.0)
    assert (figures["sent"], figures["delivered"]) == (2_000, 2_000)
    assert all(figures[fault] == 0 for fault in ("lost", "out_of_order_or_twice", "corrupt", "redelivered"))
    assert figures["delivered_per_s"] > 0 and figures["restart_s"] > 0


def test_a_broker_that_has_forgotten_the_session_is_a_fault() -> None:
    class Forgetful(Rumq):
        """Each start has a directory of its own."""

        def command(self, load: Any, folder: Path, port: int) -> list[str]:
            command = super().command(load, folder, port)
            at = command.index("--data") + 1
            return ["sh", "-c", f'exec {" ".join(command[:at])} "{folder}/$$" {" ".join(command[at + 1 :])}']

    scenario = SCENARIOS["redelivery-qos1"]
    with (
        pytest.raises(BenchFault, match="the session is gone"),
        running(Forgetful(), scenario.load) as broker,
    ):
        measure(scenario, broker, 1.0)


def test_a_broker_of_somebody_else_is_not_killed() -> None:
    with pytest.raises(BenchFault, match="cannot be killed"):
        redelivery.redelivery(SCENARIOS["redelivery-qos1"].load, Broker(("127.0.0.1", 1), None, 0.0))


def test_mosquitto_saves_its_queues_before_it_is_killed(tmp_path: Path) -> None:
    load = SCENARIOS["redelivery-qos2-100"].load
    Mosquitto().command(load, tmp_path, 1883)
    settings = (tmp_path / "mosquitto.conf").read_text()
    assert "autosave_interval 2\n" in settings and "max_inflight_messages 100\n" in settings
