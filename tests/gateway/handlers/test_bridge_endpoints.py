"""Bridges over REST: how each is connected and what it relayed, a page of them at a time, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from rumq.bridge.counts import IN, OUT, BridgeCounts
from rumq.gateway.handlers.bridge_endpoints import NOT_RUNNING
from rumq.gateway.handlers.context import BridgeReport
from tests.gateway.in_process import InProcess

TOKENS = {"ops": (("read", "administer"), ""), "reader": (("read",), ""), "pusher": (("publish",), "")}
ANNA = '[[rule]]\nusers = ["anna"]\nallow = ["subscribe", "replay"]\ntopics = ["open/#"]\n'


@pytest.fixture
def place(tmp_path: Path) -> InProcess:
    return InProcess(tmp_path, TOKENS)


def reports(place: InProcess, bridges: dict[str, BridgeCounts], *, is_live: bool = True) -> None:
    figures = {name: each.figures() for name, each in bridges.items()}
    place.context.figures.bridge_report = lambda: BridgeReport(figures, is_live)


def centre() -> BridgeCounts:
    counts = BridgeCounts(address="mqtts://centre.example:8883")
    counts.note_failed(5, "connection refused")
    counts.note_connected(7, "abc", "5.0")
    counts.relayed[OUT].messages, counts.relayed[OUT].bytes, counts.relayed[IN].looped = 3, 30, 2
    counts.relayed[IN].refused.update(["not authorized", "packet too large"])
    return counts


def test_it_says_how_a_bridge_is_connected_and_what_it_relayed_each_way(place: InProcess) -> None:
    reports(place, {"centre": centre()})
    [row] = place.ask("GET", "bridges", token="reader").json()["bridges"]
    out, back = row.pop("outgoing"), row.pop("incoming")
    assert row == {
        "name": "centre", "connected": True, "since_us": 7, "why": "connection refused", "connections": 1,
        "address": "mqtts://centre.example:8883", "broker": "abc", "mqtt": "5.0",
    }  # fmt: skip
    assert (out["messages"], out["bytes"], back["looped"], back["refused"]) == (3, 30, 2, 2)


def test_bridges_whose_process_is_gone_are_not_connected_and_it_says_so(place: InProcess) -> None:
    reports(place, {"centre": centre()}, is_live=False)
    [row] = place.ask("GET", "bridges").json()["bridges"]
    assert (row["connected"], row["since_us"], row["why"]) == (False, None, NOT_RUNNING)
    assert row["outgoing"]["messages"] == 3


def test_a_node_that_does_not_run_them_says_which_one_does(place: InProcess) -> None:
    said = "node n2 runs the bridges: ask there"
    for is_live in (True, False):
        place.context.figures.bridge_report = lambda is_live=is_live: BridgeReport({}, is_live, said)
        found = place.ask("GET", "bridges").json()
        assert found == {"bridges": [], "elsewhere": said if is_live else "", "left_out": 0}


def test_an_answer_has_a_page_of_them_by_name(place: InProcess) -> None:
    reports(place, {f"b{n:03}": BridgeCounts() for n in reversed(range(250))})
    first = place.ask("GET", "bridges").json()
    assert ([each["name"] for each in first["bridges"]][::99], first["left_out"]) == (["b000", "b099"], 150)
    last = place.ask("GET", "bridges?limit=200&offset=200").json()
    assert (len(last["bridges"]), last["left_out"]) == (50, 200)
    for wrong in ("bridges?limit=201", "bridges?limit=0", "bridges?offset=-1"):
        assert place.ask("GET", wrong).status_code == 400, wrong


def test_figures_of_an_older_process_are_told_without_what_it_did_not_write(place: InProcess) -> None:
    old = {"up": 1, "connections": 4, OUT: {"messages": 1, "more": 9}, IN: {}}
    place.context.figures.bridge_report = lambda: BridgeReport({"old": old}, True)
    [row] = place.ask("GET", "bridges").json()["bridges"]
    assert (row["connected"], row["since_us"], row["address"], row["outgoing"]["messages"]) == (True, None, "", 1)


def test_a_token_is_told_if_it_may_read_and_no_rule_keeps_a_topic_from_its_user(tmp_path: Path) -> None:
    """A failure may name a topic filter of the settings."""
    place = InProcess(tmp_path, TOKENS | {"anna": (("read",), "anna")}, ANNA)
    reports(place, {"centre": centre()})
    assert place.ask("GET", "bridges", token="ops").status_code == 200
    for token in ("anna", "pusher"):
        assert place.ask("GET", "bridges", token=token).status_code == 403, token
