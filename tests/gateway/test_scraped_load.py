"""Calls and bandwidth as a scrape tells of them, after a load that is known."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.conformance.peer import Peer
from tests.gateway.conftest import Gateway, started


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Gateway]:
    """With two shards."""
    made = started(tmp_path, shards=2)
    yield made
    made.broker.end()


def test_calls_are_counted_and_timed_by_method_route_and_status(gateway: Gateway) -> None:
    """GOR-10: a known load, as the scrape after it tells of it."""
    before = durations(gateway)
    for _ in range(7):
        gateway.publish({"topic": "counted"})
    for _ in range(3):
        assert gateway.ask("POST", "/api/v1/publish", b"nonsense").status == 400
    assert gateway.ask("GET", "/api/v1/nothing/of/the/kind").status == 404
    found: Counter[tuple[str, str, str]] = Counter()
    while not found["GET", "*", "4xx"]:  # a scrape is at most a second old
        found = Counter(durations(gateway)) - Counter(before)
    assert found["POST", "/api/v1/publish", "2xx"] == 7
    assert found["POST", "/api/v1/publish", "4xx"] == 3
    assert found["GET", "*", "4xx"] == 1, "a path that is no route is no label"


def durations(gateway: Gateway) -> dict[tuple[str, str, str], int]:
    """How many calls there were; the buckets say no less."""
    text = gateway.ask("GET", "/metrics").body.decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    found: dict[tuple[str, str, str], int] = {}
    for sample in families["rumq_gateway_request_seconds"].samples:
        labels = sample.labels["method"], sample.labels["route"], sample.labels["status"]
        if sample.name.endswith("_count") or sample.labels.get("le") == "+Inf":
            assert found.setdefault(labels, int(sample.value)) == int(sample.value)
    return found


def test_bandwidth_of_a_client_its_listener_and_the_router_are_told_apart(two: Gateway) -> None:
    """RQD-12."""
    size = 10_000
    with Peer(two.broker.address) as peer:
        peer.connect("bandwidth")
        for number in range(20):  # to partitions of both shards
            assert peer.publish(f"open/bandwidth/{number}", b"x" * size, 1) in (0, 0x10)
        while (text := two.ask("GET", "/metrics?client=bandwidth").body.decode()) and (
            value(text, "rumq_listener_received_bytes_total", listener="127.0.0.1:0") < 20 * size
        ):
            pass
    sent = 20 * (size + 30)
    assert 20 * size < value(text, "rumq_client_received_bytes_total", client_id="bandwidth") < sent
    assert 20 * size < value(text, "rumq_listener_received_bytes_total", listener="127.0.0.1:0") < sent + 1000
    assert 0 < value(text, "rumq_listener_sent_bytes_total", listener="127.0.0.1:0") < size
    assert 20 * size < value(text, "rumq_published_bytes_total") < sent
    assert 5 * size < value(text, "rumq_bus_sent_bytes_total") < 2 * sent


def value(text: str, name: str, **labels: str) -> float:
    """Of the series with these labels, in all shards."""
    families = text_string_to_metric_families(text)
    samples = [each for family in families for each in family.samples if each.name == name]
    return sum(each.value for each in samples if labels.items() <= each.labels.items())
