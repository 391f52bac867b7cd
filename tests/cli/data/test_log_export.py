"""`rumqd log export`: what is in the file is what was published, and a file is whole or not there."""

import base64
import json
from pathlib import Path

import pytest

from tests.cli.conftest import rumqd
from tests.conformance.wire import Prop
from tests.limits.conftest import Dial, Run, join, run

__all__ = ["join", "run"]
BINARY = b"\xff\x00\xfe"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def filled(run: Run, join: Dial) -> Path:
    """Ten numbers on `a`, one message with properties and one that is no text on `b/c`; the broker is off."""
    broker = run()
    publisher = join(broker, "p")
    for number in range(10):
        publisher.publish("a", b"%d" % number, qos=1)
    publisher.publish("b/c", b"x", qos=2, properties=[(Prop.USER_PROPERTY, ("k", "v"))], retain=True)
    publisher.publish("b/c", BINARY, qos=1)
    assert broker.stop() == 0
    return broker.data


def lines(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_everything_as_lines(filled: Path) -> None:
    done = rumqd("log", "export", "--data", str(filled))
    assert done.status == 0
    rows = lines(done.out)
    assert [row["payload"] for row in rows[:10]] == [str(n) for n in range(10)]
    assert rows[10]["topic"] == "b/c" and rows[10]["properties"] == {"user_properties": [["k", "v"]]}
    assert rows[10]["retain"] is True and rows[10]["qos"] == 2
    assert rows[11]["encoding"] == "base64" and base64.b64decode(str(rows[11]["payload"])) == BINARY
    assert [row["lsn"] for row in rows] == list(range(12))


def test_a_range_of_a_topic(filled: Path) -> None:
    done = rumqd("log", "export", "--data", str(filled), "--topic", "a", "--from", "3", "--until", "6")
    assert [row["topic_offset"] for row in lines(done.out)] == [3, 4, 5]
    none = rumqd("log", "export", "--data", str(filled), "--until", "-1h")
    assert none.status == 0 and none.out == ""


def test_parquet(filled: Path, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "all.parquet"
    assert rumqd("log", "export", "--data", str(filled), "--to", str(path)).status == 0
    table = pq.read_table(path).to_pylist()
    assert [row["payload"] for row in table][-2:] == [b"x", BINARY]
    assert json.loads(table[10]["properties"]) == {"user_properties": [["k", "v"]]}
    assert table[0]["time"].tzinfo is not None


def test_a_file_is_whole_or_not_there(filled: Path, tmp_path: Path) -> None:
    refused = rumqd("log", "export", "--data", str(filled), "--to", str(tmp_path / "none" / "x.jsonl"))
    assert refused.status == 1 and "cannot write" in refused.err
    path = tmp_path / "x.jsonl"
    path.write_text("old")
    (segment,) = (filled / "main/g1/p0").glob("*.seg")
    content = bytearray(segment.read_bytes())
    content[4200] ^= 1
    segment.write_bytes(content)
    told = rumqd("log", "export", "--data", str(filled), "--to", str(path))
    assert told.status == 1 and "records 0 to" in told.err
    assert all(json.loads(line)["lsn"] > 0 for line in path.read_text().splitlines())
    assert not list(tmp_path.glob("*.new"))
