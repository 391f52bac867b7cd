"""`rumqd log` on a data directory, with its broker running and after it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Broker, rumqd


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose broker has stopped: ten records of two topics."""
    folder = tmp_path_factory.mktemp("log") / "data"
    broker = Broker(folder)
    for topic in ("plant/1", "plant/2"):
        lines = b"".join(b"%s %d\n" % (topic.encode(), number) for number in range(5))
        assert rumqd("pub", "-p", broker.port, topic, "-l", "-q", "1", stdin=lines).status == 0
    assert broker.stop() == 0
    return folder


def test_ls_says_what_each_segment_holds(data: Path) -> None:
    ended = rumqd("log", "ls", "--data", str(data), "--json")
    [row] = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.status == 0
    assert (row["partition"], row["base_lsn"], row["end_lsn"], row["records"]) == ("main/g1/p0", 0, 10, 10)
    assert row["first"] <= row["last"] and row["first"].endswith("Z")
    table = rumqd("log", "ls", "--data", str(data)).out
    assert "main/g1/p0" in table and "10 records" in table


def test_read_prints_in_the_order_of_the_partition(data: Path) -> None:
    ended = rumqd("log", "read", "--data", str(data), "-F", "%n %t %o %p")
    assert ended.status == 0
    assert ended.out.splitlines() == [
        f"{5 * topic - 5 + number} plant/{topic} {number} plant/{topic} {number}"
        for topic in (1, 2)
        for number in range(5)
    ]


@pytest.mark.parametrize(
    ("wish", "payloads"),
    [
        (["--topic", "plant/2", "--from", "3"], ["plant/2 3", "plant/2 4"]),
        (["--topic", "+/1", "--count", "2"], ["plant/1 0", "plant/1 1"]),
        (["--topic", "other/#"], []),
        (["--from", "latest"], []),
        (["--from", "-1h", "-C", "1"], ["plant/1 0"]),
        (["--from", "2999-01-01T00:00:00Z"], []),
        (["--stream", "other"], []),
    ],
)
def test_read_takes_what_was_asked_for(data: Path, wish: list[str], payloads: list[str]) -> None:
    ended = rumqd("log", "read", "--data", str(data), "-F", "%p", *wish)
    assert (ended.status, ended.out.splitlines()) == (0, payloads)


def test_read_refuses_a_place_that_it_does_not_know(data: Path) -> None:
    ended = rumqd("log", "read", "--data", str(data), "--from", "yesterday")
    assert ended.status == 2 and "earliest" in ended.err and "Traceback" not in ended.err


def test_the_log_can_be_read_while_its_broker_runs(broker: Broker) -> None:
    assert rumqd("pub", "-p", broker.port, "live/1", "-m", "x", "-q", "1").status == 0
    ended = rumqd("log", "read", "--data", str(broker.data), "--topic", "live/#", "--json")
    assert json.loads(ended.out)["payload"] == "x"
    assert rumqd("log", "verify", "--data", str(broker.data)).status == 0


def test_verify_is_silent_about_nothing(data: Path, tmp_path: Path) -> None:
    assert rumqd("log", "verify", "--data", str(data)).status == 0
    damaged = tmp_path / "data"
    shutil.copytree(data, damaged, ignore=shutil.ignore_patterns("*.sock"))
    [segment] = damaged.glob("main/**/*.seg")
    content = bytearray(segment.read_bytes())
    content[content.index(b"plant/1 3")] ^= 1
    segment.write_bytes(content)
    ended = rumqd("log", "verify", "--data", str(damaged), "--json")
    assert ended.status == 1
    assert "error" in [json.loads(line)["severity"] for line in ended.out.splitlines()]


@pytest.mark.parametrize("command", ["ls", "read", "verify"])
def test_a_directory_without_a_log_ends_with_status_3(command: str, tmp_path: Path) -> None:
    ended = rumqd("log", command, "--data", str(tmp_path / "none"))
    assert ended.status == 3 and "no data directory" in ended.err
