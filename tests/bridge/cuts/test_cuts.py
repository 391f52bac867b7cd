"""Each message of QoS 1 and 2 is there once, in order, wherever a line is cut, whoever is killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.bridge.cuts.ledger import Found, compare
from tests.bridge.cuts.run import Plan, run
from tests.bridge.cuts.transports import transport_of

NAMES = {"a": ("edge/a", 2), "b": ("b", 1)}


def found_of(source: list[tuple[str, str]], target: list[tuple[str, str]]) -> Found:
    found = Found()
    compare(found, source, target, NAMES)
    return found


def test_a_line_that_is_cut_and_processes_that_are_killed() -> None:
    outcome = run(Plan(cuts=12, kills=3, seed=3))
    assert outcome.found.is_right, outcome.found.examples
    assert outcome.cuts >= 10 and outcome.connections >= 10 and min(outcome.found.messages.values()) > 1_000


@pytest.mark.parametrize("scheme", ["mqtts", "ws", "wss"])
def test_a_line_of_tls_or_websockets_that_is_cut(scheme: str, tmp_path: Path) -> None:
    """Within a record of TLS, a frame of WebSocket, or a handshake: what was taken from them counts, as over TCP."""
    outcome = run(Plan(cuts=6, kills=3, seed=4, transport=transport_of(scheme, tmp_path)))
    assert outcome.found.is_right, outcome.found.examples
    assert outcome.cuts >= 5 and outcome.connections >= 2 and min(outcome.found.messages.values()) > 300


def test_an_edge_that_is_unplugged_and_killed_meanwhile() -> None:
    outcome = run(Plan(cuts=1, kills=0, unplugged_seconds=2.0))
    assert outcome.found.is_right, outcome.found.examples
    assert outcome.connections >= 3 and outcome.found.messages[1] > 1_000


@pytest.mark.long
@pytest.mark.parametrize(("seed", "scheme"), [(1, "mqtt"), (2, "mqtt"), (3, "mqtts"), (4, "ws"), (5, "wss")])
def test_many_times(seed: int, scheme: str, tmp_path: Path) -> None:
    outcome = run(Plan(cuts=250, kills=25, seed=seed, transport=transport_of(scheme, tmp_path)))
    assert outcome.found.is_right, outcome.found.examples


def test_the_ledger_counts_what_is_lost_doubled_and_in_another_order() -> None:
    sent = [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1")]
    right = [("edge/a", "1"), ("edge/a", "2"), ("edge/a", "3"), ("b", "1")]
    assert found_of(sent, right).is_right
    assert found_of(sent, right).messages == Counter({2: 3, 1: 1})
    lost = found_of(sent, right[1:])
    assert lost.lost == Counter({2: 1, 1: 0}) and not lost.is_right and lost.examples == ["a: lost: 1"]
    assert not found_of(sent, [right[0], *right]).is_right
    assert not found_of(sent, [right[1], right[0], *right[2:]]).is_right
    assert not found_of(sent, right[:3]).is_right, "lost at QoS 1"
    assert not found_of(sent, [*right, right[3]]).is_right, "doubled at QoS 1"
