"""The process of the bridges on one node: they run while it leads shard 0, by the settings as they are then."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from rumq.process.bridge import running_bridges
from rumq.process.bridge.node_bridges import NodeBridges
from rumq.process.bridge.running_bridges import RunningBridges
from rumq.settings.table import Bridge, Settings
from tests.bridge.nodes.test_kept_pairings import Journal
from tests.client.fake_broker import simulated
from tests.kafka.nodes.views import view


def settings(tmp_path: Path, *names: str) -> Settings:
    """No broker is there: the bridges try."""
    found = Settings(bridge=tuple(Bridge(name=name, url="unix:///no/such/socket") for name in names))
    return Settings(bridge=found.bridge, data=type(found.data)(dir=str(tmp_path)))


@simulated
async def test_they_run_while_it_leads_and_changes_wait_until_it_does(tmp_path: Path) -> None:
    journal = Journal()
    node = NodeBridges(settings(tmp_path, "a"), tmp_path, "id", journal.ask)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.seat.run)
        node.seat.see(view(leaders=("n2",)))
        node.change(settings(tmp_path, "a", "b"))
        await trio.sleep(1)
        assert (dict(node.counts()), node.elsewhere) == ({}, "node n2 runs the bridges: ask there")
        node.seat.see(view(leaders=("n1",)))
        await trio.sleep(1)
        assert (sorted(node.counts()), node.elsewhere) == (["a", "b"], "")
        node.change(settings(tmp_path, "b"))
        await trio.sleep(1)
        assert sorted(node.counts()) == ["b"]
        await journal.taken()  # by another node
        node.seat.see(view(leaders=("n2",)))
        await trio.sleep(2)
        assert not node.counts() and node.elsewhere
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("is_there", [True, False])
@simulated
async def test_what_a_bridge_that_left_the_settings_had_noted_goes_once_its_session_here_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """It left while another node ran it, or none. is_there: the broker here ends the session"""
    if is_there:
        monkeypatch.setattr(running_bridges, "forget_session", lambda side: trio.sleep(1))
    journal = Journal()
    journal.values = {b"gone": b"{}", b"a": b"{}"}
    node = NodeBridges(settings(tmp_path, "a"), tmp_path, "id", journal.ask)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.seat.run)
        node.seat.see(view(leaders=("n1",)))
        await trio.sleep(60)
        assert list(journal.values) == ([b"a"] if is_there else [b"gone", b"a"])
        nursery.cancel_scope.cancel()


def test_a_broker_alone_runs_them_itself() -> None:
    assert RunningBridges.elsewhere == ""
