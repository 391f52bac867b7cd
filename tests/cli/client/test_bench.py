"""`rumqd bench`: rates and latency of a broker, bounded in time and number."""

import json
from array import array

import pytest

from rumq.cli.client.bench import BenchFigures, reported
from tests.cli.conftest import Broker, rumqd


def bench(broker: Broker, *arguments: str) -> "dict[str, object]":
    ended = rumqd("bench", "-h", "127.0.0.1", "-p", broker.port, "--json", *arguments)
    assert (ended.status, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("arguments", [("-q", "0"), ("-q", "1", "-V", "3.1.1"), ("-q", "2", "--topics", "3")])
def test_every_message_comes_once(broker: Broker, arguments: tuple[str, ...]) -> None:
    found = bench(broker, "--count", "500", *arguments)
    assert (found["sent"], found["received"]) == (500, 500)
    latency = found["latency_ms"]
    assert isinstance(latency, dict) and 0 < latency["p50"] <= latency["p99"] <= latency["max"]


def test_it_ends_after_its_time_and_keeps_its_rate(broker: Broker) -> None:
    found = bench(broker, "--rate", "100", "--seconds", "1")
    assert 50 <= int(str(found["sent"])) <= 120


def test_without_json_a_person_reads_it(broker: Broker) -> None:
    ended = rumqd("bench", "-h", "127.0.0.1", "-p", broker.port, "--count", "10", "--size", "100")
    first, second, third = ended.out.splitlines()
    assert first.startswith("published  10 messages of 100 bytes, QoS 1: ")
    assert second.startswith("received   10: ") and third.startswith("latency    p50 ")


def test_what_is_missing_is_no_success() -> None:
    report = reported(BenchFigures(10, 1.0, 1.0, array("q", [1_000_000] * 9), True))
    assert (report.sent, report.received, report.latency_ms["p50"]) == (10, 9, 1.0)


@pytest.mark.parametrize("arguments", [("-t", "a/#"), ("--count", "0"), ("--seconds", "3601"), ("--size", "7")])
def test_what_is_out_of_bounds_is_refused(arguments: tuple[str, ...]) -> None:
    assert rumqd("bench", *arguments).status == 2
