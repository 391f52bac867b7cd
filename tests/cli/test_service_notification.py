"""sd_notify(3), with a socket of the test in systemd's place: whoever starts rumqd learns of its state."""

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import broker_process
from tests.broker_process import SECONDS_MAX, Rumqd


class Manager:
    """The end of NOTIFY_SOCKET that systemd has."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        sock.settimeout(SECONDS_MAX)

    def told(self) -> dict[str, str]:
        """The next datagram, as its variables."""
        text = self._sock.recv(4096).decode()
        return dict(line.split("=", 1) for line in text.splitlines())


@pytest.fixture(params=["a path", "an abstract name"])
def manager(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Manager]:
    name = str(tmp_path / "notify") if request.param == "a path" else f"@rumq-test/{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0" + name[1:] if name.startswith("@") else name)
        monkeypatch.setitem(broker_process.ENVIRONMENT, "NOTIFY_SOCKET", name)
        yield Manager(sock)


@pytest.mark.parametrize("shards", [1, 2])
def test_the_service_manager_learns_of_start_reload_and_stop(
    manager: Manager, tmp_path: Path, shards: int
) -> None:
    broker = Rumqd(tmp_path / "data", "--shards", str(shards))
    broker.start()
    try:
        assert manager.told() == {"READY": "1"}
        socket.create_connection(broker.address).close()  # READY is not said before clients can come
        before = time.monotonic_ns() // 1000
        broker.process.send_signal(signal.SIGHUP)
        reloading = manager.told()
        assert reloading.pop("RELOADING") == "1"
        assert before <= int(reloading.pop("MONOTONIC_USEC")) <= time.monotonic_ns() // 1000
        assert not reloading
        assert manager.told() == {"READY": "1"}
        assert broker.event("settings.reloaded", number=shards)
        broker.process.terminate()
        assert manager.told() == {"STOPPING": "1"}
        assert broker.process.wait(SECONDS_MAX) == 0
    finally:
        broker.end()


def test_faulty_settings_end_the_reload_too(manager: Manager, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("")
    broker = Rumqd(tmp_path / "data", "--config", str(config))
    broker.start()
    try:
        assert manager.told() == {"READY": "1"}
        config.write_text("nonsense = 1\n")
        broker.process.send_signal(signal.SIGHUP)
        assert "RELOADING" in manager.told()
        assert manager.told() == {"READY": "1"}
        assert broker.event("settings.refused")
    finally:
        broker.end()


def test_a_manager_that_is_gone_is_no_reason_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(broker_process.ENVIRONMENT, "NOTIFY_SOCKET", str(tmp_path / "nobody"))
    broker = Rumqd(tmp_path / "data")
    broker.start()
    assert broker.stop() == 0
