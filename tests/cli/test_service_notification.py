"""sd_notify(3), with a socket of the test in systemd's place: whoever starts rumqd learns of its state."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import broker_process
from tests.broker_process import SECONDS_MAX, Rumqd

WATCHDOG_SECONDS = 2.0


class Manager:
    """The end of NOTIFY_SOCKET that systemd has."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def told(self, seconds_max: float = SECONDS_MAX) -> dict[str, str]:
        """The next datagram, as its variables; raises TimeoutError."""
        self._sock.settimeout(seconds_max)
        text = self._sock.recv(4096).decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def hears_until_ready(self) -> None:
        """A supervisor pings while its shards start, too."""
        while (told := self.told()) != {"READY": "1"}:
            assert told == {"WATCHDOG": "1"}

    def hears_nothing_for(self, seconds: float) -> None:
        """Return after the first silence that is as long: `seconds` of it are what WatchdogSec allows."""
        for _ in range(10):  # some are under way when it begins
            try:
                assert self.told(seconds) == {"WATCHDOG": "1"}
            except TimeoutError:
                return
        raise AssertionError("it is not silent")


@pytest.fixture(params=["a path", "an abstract name"])
def manager(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    name = str(tmp_path / "notify") if request.param == "a path" else f"@rumq-test/{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0" + name[1:] if name.startswith("@") else name)
        monkeypatch.setitem(broker_process.ENVIRONMENT, "NOTIFY_SOCKET", name)
        yield Manager(sock)


@pytest.mark.parametrize("shards", [1, 2])
def test_the_service_manager_learns_of_start_reload_and_stop(manager: Manager, tmp_path: Path, shards: int) -> None:
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


@pytest.mark.parametrize("shards", [1, 2])
def test_a_loop_that_is_stuck_is_noticed_and_the_broker_restarted(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    """WatchdogSec and Restart=on-failure, with the test in systemd's place."""
    monkeypatch.setitem(broker_process.ENVIRONMENT, "WATCHDOG_USEC", str(int(WATCHDOG_SECONDS * 1_000_000)))
    broker = Rumqd(tmp_path / "data", "--shards", str(shards))
    broker.start()
    try:
        manager.hears_until_ready()
        assert [manager.told() for _ in range(4)] == [{"WATCHDOG": "1"}] * 4
        os.kill(shard_of(broker, shards), signal.SIGSTOP)
        manager.hears_nothing_for(WATCHDOG_SECONDS)
        assert broker.process.poll() is None
        if shards == 2:
            assert broker.event("shard.silent")["seconds"] >= WATCHDOG_SECONDS / 2
        broker.kill()
        broker.start()
        manager.hears_until_ready()
        assert [manager.told() for _ in range(4)] == [{"WATCHDOG": "1"}] * 4
    finally:
        broker.end()


def shard_of(broker: Rumqd, shards: int) -> int:
    """The process of the last shard: the broker itself, or a child of it."""
    pid = broker.process.pid
    return pid if shards == 1 else int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[-1])
