"""A bridge that leaves the settings and comes back while its sessions are being ended keeps what it has noted."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from rumq.bridge.pairing import PairingFiles
from rumq.bridge.side import LOCAL, REMOTE, Side
from rumq.process.bridge import running_bridges
from rumq.process.bridge.running_bridges import RunningBridges
from tests.client.fake_broker import simulated
from tests.process.bridge.test_node_bridges import settings

SECONDS = 5.0  # that a broker takes for the end of a session


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sides whose session is to end, as they are asked."""
    found: list[str] = []

    async def forget(side: Side) -> None:
        found.append(side.name)
        await trio.sleep(SECONDS)

    monkeypatch.setattr(running_bridges, "forget_session", forget)
    return found


@simulated
async def test_one_that_is_back_is_not_forgotten(tmp_path: Path, asked: list[str]) -> None:
    store = PairingFiles(tmp_path)
    await store.write("a", b"{}")
    async with trio.open_nursery() as nursery:
        bridges = RunningBridges(store, "id", nursery)
        bridges.change(settings(tmp_path, "a"))
        bridges.change(settings(tmp_path))
        await trio.sleep(SECONDS / 2)
        bridges.change(settings(tmp_path, "a"))
        await trio.sleep(3 * SECONDS)
        assert (asked, store.names(), list(bridges.counts())) == ([LOCAL], ["a"], ["a"])
        nursery.cancel_scope.cancel()


@simulated
async def test_another_reload_meanwhile_asks_nobody_again(tmp_path: Path, asked: list[str]) -> None:
    store = PairingFiles(tmp_path)
    await store.write("a", b"{}")
    async with trio.open_nursery() as nursery:
        bridges = RunningBridges(store, "id", nursery)
        bridges.change(settings(tmp_path, "a"))
        for _ in range(3):
            bridges.change(settings(tmp_path))
            await trio.sleep(SECONDS / 4)
        await trio.sleep(3 * SECONDS)
        assert (asked, store.names()) == ([LOCAL, REMOTE], [])
        bridges.change(settings(tmp_path, "a"))
        assert list(bridges.counts()) == ["a"]
        nursery.cancel_scope.cancel()
