"""sd_notify(3): one datagram for each state, and nothing where nobody asked."""

import socket
from pathlib import Path

import pytest

from rumq.supervision.service_notification import READY, notify, reloading


def test_a_state_is_one_datagram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        notify(READY)
        notify(reloading())
        assert manager.recv(100) == b"READY=1"
        assert manager.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")


def test_a_manager_that_is_not_there_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    notify(READY)
    monkeypatch.delenv("NOTIFY_SOCKET")
    notify(READY)
