"""`rumq.read`: the table of the Spark source without Spark, from files and from a Flight server.

docs/guides/read.md."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rumq
from rumq.flight.errors import NotAllowed
from rumq.flight.schema import NAMES
from rumq.table.arrow.columns import Columns
from rumq.table.errors import BadOption, DataLoss, NoColumn, UnknownOption, UnknownTopic
from tests.commitlog.records import NOW
from tests.flight.served import door_of, rules, served, users
from tests.spark.histories import FULL_HOUR, History
from tests.spark.logs import SECOND_US, Publisher, message, store_at

Place = Callable[[str], str]


def lsns(found: rumq.Records) -> list[int]:
    return [lsn for batch in found for lsn in batch.column("lsn").to_pylist()]


# What is read


def test_a_row_a_message_with_every_column(place: Place, data: str) -> None:
    table = rumq.read(place(data)).to_arrow()
    assert table.schema.names == list(NAMES) and table["lsn"].to_pylist() == list(range(300))
    assert table["payload"].to_pylist() == [b"%d" % n for n in range(300)]
    row = table.slice(10, 1).to_pylist()[0]
    assert row == {
        "topic": "plant/1/temp", "topic_offset": 3, "lsn": 10, "partition": "main/g1/p0", "payload": b"10", "qos": 0,
        "ts": datetime.fromtimestamp((NOW + 19 * SECOND_US) / 1e6, UTC), "retain": False, "client_id": "device-7",
        "properties": [{"key": "n", "value": "10"}, {"key": "n", "value": "again"}], "content_type": "x",
        "response_topic": None, "correlation_data": None, "message_expiry": None, "payload_format": None,
    }  # fmt: skip
    assert table["retain"].to_pylist() == [False] * 299 + [True]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"topics": "plant/1/+"}, range(1, 300, 3)),
        ({"topics": ["plant/1/+", "other/#"]}, range(1, 300, 3)),
        ({"topics": "plant/1/temp, plant/2/temp", "start": "tail:6"}, [295, 296, 298, 299]),
        ({"start": {"main/g1/p0": 250}, "partitions": ["main/g1/p0"], "stream": "main"}, range(250, 300)),
        ({"end": {"main/g1/p0": 50}}, range(50)),
        ({"start": datetime.fromtimestamp((NOW + 99 * SECOND_US) / 1e6, UTC)}, range(80, 300)),
        ({"start": "latest"}, []),
        ({"start": "2020-01-01", "end": "2020-01-02"}, []),
    ],
)
def test_topics_and_positions_choose_records(place: Place, data: str, given: dict[str, Any], expected: Any) -> None:
    assert lsns(rumq.read(place(data), **given)) == list(expected)


def test_each_iteration_gives_the_same_records(place: Place, tmp_path: Path) -> None:
    store = store_at(str(tmp_path / "data"))
    publisher = Publisher(store.own[0])
    publisher.chunk([message("a", b"1"), message("a", b"2")])
    store.close()
    found = rumq.read(place(str(tmp_path / "data")), columns=["lsn"])
    assert lsns(found) == [0, 1] and found.offsets == {"main/g1/p0": (0, 2)}
    store = store_at(str(tmp_path / "data"))
    Publisher(store.own[0]).chunk([message("a", b"3")])
    store.close()
    assert lsns(found) == [0, 1]
    assert lsns(rumq.read(place(str(tmp_path / "data")))) == [0, 1, 2]


def test_only_the_columns_that_are_asked_for_are_made(place: Place, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    array = Columns.array
    monkeypatch.setattr(Columns, "array", lambda self, name: made.append(name) or array(self, name))
    table = rumq.read(place(data), "plant/1/temp", columns=["payload", "lsn"]).to_arrow()
    assert table.to_pylist() == [{"payload": b"%d" % n, "lsn": n} for n in range(1, 300, 3)]
    assert set(made) == {"payload", "lsn"}


def test_batches_are_small_and_read_as_they_are_used(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    store = store_at(str(tmp_path / "data"), segment_bytes_max=1 << 22)
    publisher = Publisher(store.own[0])
    for _ in range(40):
        publisher.chunk([message("plant/7", b"x" * 1000)] * 1000)
    store.close()
    made = []
    array = Columns.array
    monkeypatch.setattr(Columns, "array", lambda self, name: made.append(name) or array(self, name))
    batches = iter(rumq.read(place(str(tmp_path / "data")), columns=["payload"]))
    sizes = [next(batches).nbytes]
    # A server makes some ahead.
    assert len(made) == 1 or "flight" in request.node.name, "more than a batch was read for the first one"
    sizes += [batch.nbytes for batch in batches]
    assert sum(sizes) >= 40_000_000 and max(sizes) <= 9 << 20 and len(made) == len(sizes)


# Log and lake


@pytest.fixture
def history(tmp_path: Path) -> Any:
    made = History(tmp_path)
    made.publish(100)
    made.export(merge_at=(FULL_HOUR // SECOND_US) + 2 * 86400)
    made.remove(3)
    made.publish(20)
    yield made
    made.close()


def of_partitions(table: pa.Table) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, lsn in zip(table["partition"].to_pylist(), table["lsn"].to_pylist(), strict=True):
        found.setdefault(name, []).append(lsn)
    return found


def test_log_and_lake_are_one_table_without_gap_or_double(place: Place, history: History) -> None:
    assert history.view(0).first_lsn > 100, "the lake is not needed"
    table = rumq.read(place(history.data)).to_arrow()
    assert of_partitions(table) == {f"main/g1/p{n}": list(range(1200)) for n in (0, 1)}
    payloads = table.filter(pa.compute.equal(table["topic"], "plant/3/temp"))["payload"].to_pylist()
    assert payloads == [b"%d" % n for n in range(3, 120, 7)] * 2
    some = rumq.read(place(history.data), "plant/3/temp", columns=["ts", "topic", "lsn", "partition"]).to_arrow()
    assert some.num_rows == len(payloads) and set(some["topic"].to_pylist()) == {"plant/3/temp"}


def test_what_leaves_the_log_after_the_plan_comes_from_the_lake(place: Place, history: History) -> None:
    found = rumq.read(place(history.data))
    batches = iter(found)
    tables = [next(batches)]
    history.export()
    history.remove(1)
    table = pa.Table.from_batches([*tables, *batches])
    assert of_partitions(table) == {f"main/g1/p{n}": list(range(1200)) for n in (0, 1)}


def test_without_the_lake_what_is_gone_is_said_or_skipped(place: Place, history: History) -> None:
    first = history.view(0).first_lsn
    begin = {f"main/g1/p{n}": 0 for n in (0, 1)}
    alone = {} if place(history.data) != history.data else {"lake": "none"}
    if not alone:
        shutil.move(history.lake, f"{history.lake}.away")
        with pytest.raises(Exception, match="lake"):
            lsns(rumq.read(place(history.data), start=begin))
        return
    with pytest.raises(DataLoss, match=r"records 0 to \d+ of main/g1/p0 cannot be read: .*fail_on_data_loss=False"):
        rumq.read(place(history.data), start=begin, **alone)
    assert lsns(rumq.read(history.data, start=begin, fail_on_data_loss=False, **alone))[0] == first


# Other libraries


def test_pandas(place: Place, data: str) -> None:
    frame = rumq.read(place(data), "plant/2/temp", columns=["ts", "payload"]).to_pandas()
    assert frame.payload.astype(float).sum() == sum(range(2, 300, 3))
    assert str(frame.ts.dt.tz) == "UTC" and len(frame) == 100


def test_polars(place: Place, data: str) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    found = rumq.read(place(data), columns=["topic", "qos"])
    assert found.to_polars().group_by("topic").len()["len"].to_list() == [100, 100, 100]
    assert polars.DataFrame(found).height == 300


def test_duckdb(place: Place, data: str) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    records = rumq.read(place(data), columns=["topic", "payload"])
    asked = "select topic, sum(payload::varchar::int) from records group by topic order by topic"
    expected = [(f"plant/{n}/temp", sum(range(n, 300, 3))) for n in range(3)]
    connection = duckdb.connect()
    connection.register("records", records)
    assert connection.sql(asked).fetchall() == connection.sql(asked).fetchall() == expected
    relation = records.to_duckdb(connection)
    assert relation.filter("topic = 'plant/1/temp'").count("*").fetchall() == [(100,)]
    assert relation.count("*").fetchall() == [(300,)]


def test_import_rumq_loads_none_of_it() -> None:
    asked = "import sys, rumq; print({'pyarrow', 'numpy', 'trio', 'rumq.records'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_missing_package_is_named_with_its_command() -> None:
    asked = "import sys; sys.modules['pyarrow'] = None; import rumq; rumq.read"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert "rumq.read needs pyarrow: pip install 'rumq[parquet]'" in done.stderr


# What is refused


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"columns": ["ts", "paylod"]}, NoColumn, "there is no column paylod: did you mean payload?"),
        ({"columns": ["ts", "ts"]}, BadOption, "option columns = .* each once"),
        ({"columns": []}, BadOption, "option columns"),
        ({"topics": "plant/#/temp"}, BadOption, 'option topics = "plant/#/temp": expected MQTT topic filters'),
        ({"topics": "$share/g/plant/#"}, BadOption, "option topics = .* write plant/#"),
        ({"start": "yesterday"}, BadOption, 'option start = "yesterday": expected .* -10m'),
        ({"end": {"main/g1/p7": 3}}, BadOption, "option end = .*exactly the partitions that are read"),
        ({"start": {"main/g1/p0": 301}}, BadOption, "option start = .*no more than where the log ends, 300"),
        ({"stream": "other"}, BadOption, "one of the streams: main"),
        ({"partitions": ["main/g1/p9"]}, BadOption, "option partitions = .*partitions that are there: main/g1/p0"),
        ({"password": "x"}, UnknownOption, "no option password: put it in a file, password_file"),
        ({"tokn_file": "x"}, UnknownOption, "no option tokn_file: did you mean token_file?"),
    ],
)
def test_a_wrong_argument_is_named(
    place: Place, data: str, given: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        rumq.read(place(data), **given)


def test_a_topic_that_nobody_has_published_to_is_refused_with_the_nearest(data: str) -> None:
    with pytest.raises(UnknownTopic, match="'plant/1/tmp': did you mean 'plant/1/temp'"):
        rumq.read(data, ["plant/1/temp", "plant/1/tmp"])
    assert lsns(rumq.read(data, "plant/+/tmp")) == []


def test_a_wrong_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=f'option source = "{tmp_path}/none": expected a data directory of rumq'):
        rumq.read(tmp_path / "none")
    with pytest.raises(BadOption, match=r'option source = "mqtt://a": expected grpc://host:8815 .*MQTT is for writing'):
        rumq.read("mqtt://a")
    with pytest.raises(UnknownOption, match="it is for reading from a broker"):
        rumq.read(tmp_path, token_file="x")
    with pytest.raises(BadOption, match=r"option username = .*password_file as well"):
        rumq.read("grpc://a", username="anna")


# Logins


def test_a_login_reads_what_the_rules_allow(data: str, tmp_path: Path) -> None:
    secret, wrong = tmp_path / "secret", tmp_path / "wrong"
    secret.write_text("secret\n")
    wrong.write_text("guess\n")
    with served(data, door_of(users("anna"), rules())) as server:
        found = rumq.read(server.address, "plant/#", username="anna", password_file=str(secret))
        assert lsns(found) == list(range(1, 300, 3))
        with pytest.raises(NotAllowed):
            lsns(rumq.read(server.address, "plant/2/#", username="anna", password_file=str(secret)))
        with pytest.raises(NotAllowed):
            rumq.read(server.address, username="anna", password_file=str(wrong))
        with pytest.raises(NotAllowed):
            rumq.read(server.address)
