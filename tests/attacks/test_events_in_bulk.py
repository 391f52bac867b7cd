"""Refused clients write to the operator's disk: long client ids and topics in events, and one refusal often."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import structlog

from rumq.events.output import get_logger, setup_events
from rumq.shards.clients.refusal_summary import ADDRESSES_MAX, TOLD_MAX, WINDOW_SECONDS, RefusalSummary
from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Peer
from tests.conformance.wire import Prop, Will

LINE_BYTES_MAX = 3000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Rumqd]:
    broker = Rumqd(tmp_path / "data", "--set", "mqtt.topic_levels_max=8")
    broker.start()
    yield broker
    broker.end()


@pytest.fixture
def lines() -> Iterator[StringIO]:
    stream = StringIO()
    setup_events("json", stream=stream)
    yield stream
    structlog.reset_defaults()
    setup_events()


@pytest.mark.parametrize("letter", ["a", "\x01", "ü", "/"])
@pytest.mark.parametrize("where", ["client id", "will", "user", "filter", "rumq-from"])
def test_a_refused_client_writes_a_short_line(broker: Rumqd, letter: str, where: str) -> None:
    """CONNECT of 65 KB with what is longest in the client id, the will, the user's name."""
    long = letter * (65_000 // len(letter.encode()))
    with Peer(broker.address) as peer:
        if where == "client id":
            peer.connect(long)
        elif where == "will":
            peer.connect("willing", will=Will(long))
        elif where == "user":
            peer.connect("named", username=long, password=b"x")
        elif where == "filter":
            peer.connect("asking")
            peer.send(wire.subscribe(1, [("$log/nowhere/" + long[:3000], 0), ("$log/" + long[:3000], 0)]))
            peer.receive()
        else:
            peer.connect("asking")
            peer.subscribe("a", properties=[(Prop.USER_PROPERTY, ("rumq-from", long))])
    broker.stop()
    told = [len(json.dumps(event)) for event in broker.events]
    assert max(told) < LINE_BYTES_MAX


def test_text_is_cut_and_its_length_told(lines: StringIO) -> None:
    get_logger("rumq.session").warning("client.refused", client_id="c" * 65_000, why="w" * 300, reason=133)
    get_logger("rumq.session").warning("settings.refused", why="w" * 300)
    first, second = map(json.loads, lines.getvalue().splitlines())
    assert first["client_id"] == "c" * 200 + "... (65000 characters)"
    assert first["why"] == "w" * 200 + "... (300 characters)"
    assert second["why"] == "w" * 300


def test_what_is_no_text_is_written_all_the_same(lines: StringIO) -> None:
    """As a token's claims can have it: half of a surrogate pair."""
    get_logger("rumq.session").info("client.connected", client_id="c", user="\ud800")
    assert json.loads(lines.getvalue())["user"] == "\\ud800"


class Told:
    """Counts what is told, and has the window end when the test says so."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []
        self.calls: list[object] = []
        self.summing = RefusalSummary(lambda name, **fields: self.events.append((name, fields)), self.later)

    def later(self, seconds: float, call: object) -> None:
        assert seconds == WINDOW_SECONDS
        self.calls.append(call)

    def window_ends(self) -> None:
        (call,), self.calls = self.calls, []
        call()  # type: ignore[operator]


def test_refusals_of_one_address_are_summed() -> None:
    told = Told()
    for port in range(5000):
        told.summing.tell("client.refused", client_id="c", peer=f"192.0.2.1:{port}", reason=0x87, why="no")
    assert len(told.events) == TOLD_MAX
    told.summing.tell("client.refused", client_id="d", peer="192.0.2.2:1", reason=0x87, why="no")
    told.summing.tell("client.connected", client_id="e", peer="192.0.2.1:1")
    assert len(told.events) == TOLD_MAX + 2
    told.window_ends()
    assert told.events[-1] == (
        "refusals.summed",
        {"address": "192.0.2.1", "of": "client.refused", "count": 4900, "seconds": WINDOW_SECONDS},
    )
    told.summing.tell("client.refused", client_id="c", peer="192.0.2.1:9", reason=0x87, why="no")
    assert told.events[-1][0] == "client.refused"


def test_an_ipv6_network_is_one_address() -> None:
    told = Told()
    for host in range(500):
        told.summing.tell("connection.refused", peer=f"[2001:db8::{host:x}]:1", transport="tls", why="no")
    told.window_ends()
    assert told.events[-1][1] == {
        "address": "2001:db8::/64", "of": "connection.refused", "count": 400, "seconds": WINDOW_SECONDS,
    }  # fmt: skip


def test_many_addresses_cost_a_bounded_number_of_counts() -> None:
    told = Told()
    for host in range(ADDRESSES_MAX + 1000):
        told.summing.tell("client.refused", client_id="c", peer=f"h{host}:1", reason=0x87, why="no")
    assert len(told.events) == ADDRESSES_MAX + TOLD_MAX
    told.window_ends()
    assert told.events[-1][1]["count"] == 1000 - TOLD_MAX
