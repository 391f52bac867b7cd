"""Clients of a leader that loses its majority or its term: where they are sent, and who holds them for the next one."""

from pathlib import Path

import pytest

from rumq.mqtt.reasons import Reason
from tests.process.shard.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_clients_are_held_for_a_node_that_knows_how_to_go_on_with_them(world: World) -> None:
    assert world.clients.maybe_hold("n2#2") is world.hold
    for other in ("n1#1", "n3#3", "n9#9"):
        assert world.clients.maybe_hold(other) is None


def test_nothing_is_moved_before_clients_are_held(world: World) -> None:
    assert world.clients.move(4, is_leaving=False) == 0 and world.departed == []
    world.hold.is_holding = True
    assert world.clients.move(4, is_leaving=False) == 3
    assert world.clients.move(4, is_leaving=True) == 3
    assert world.departed == [world.clients._give, None], "a node that stops keeps nobody at its edge"


def test_without_a_majority_logins_are_sent_to_one_node_after_the_other(world: World) -> None:
    """MQTT 5.0, 3.2.2.3.16: the Server Reference names another node, never this one."""
    world.clients.quorum_changed(False)
    faults = [world.gate.isolated() for _ in range(3)]
    assert [fault.server_reference for fault in faults] == ["n2.example:1883", "n3.example:1883", "n2.example:1883"]
    assert {fault.reason for fault in faults} == {Reason.USE_ANOTHER_SERVER}
    world.clients.quorum_changed(True)
    assert world.gate.isolated is None
