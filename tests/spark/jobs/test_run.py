"""`rumqd spark run`: from a log to a broker, to files, to the terminal, and what it refuses."""

import json
import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
pytest.importorskip("vega_datasets", reason="vega_datasets is not installed (pip install 'rumq[examples]')")

from rumq.cli.main import main
from rumq.spark.jobs import JOBS
from rumq.spark.runtime.query_lag import Lag, report_lag
from tests.broker_process import Rumqd
from tests.spark.jobs.logs import as_json, write_timed
from tests.spark.logs import message

A, B = "main/g1/p0/2", "main/g1/p0/5"
SCHEMA = "n int, x double"
REACHABLE_NEVER = "mqtt://127.0.0.1:1"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of two devices, a second between two messages; two that do not parse."""
    root = str(tmp_path_factory.mktemp("log") / "data")
    sent = [
        as_json("dev/a/x", n=0, x=0.5), as_json("dev/b/x", n=1, x=1.5), message("dev/a/x", b"{oops"),
        message("dev/a/raw", b"\x00\xff", 1, content_type="b"), as_json("dev/a/x", n=4, x=4.5),
        message("dev/b/x", b'{"n": "five"}', user_properties=[("k", "v")]), as_json("dev/b/x", n=6, x=6.5),
    ]  # fmt: skip
    write_timed(root, ((float(n), one.topic[4], [one]) for n, one in enumerate(sent)))
    return root


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rumqd]:
    made = Rumqd(tmp_path_factory.mktemp("broker") / "data")
    made.start()
    yield made
    made.end()


def url(broker: Rumqd) -> str:
    return f"mqtt://{broker.address.host}:{broker.address.port}"


def run(*arguments: str) -> int:
    return main(["spark", "run", *arguments])


def published(spark: Any, broker: Rumqd, topics: str) -> list[Any]:
    rows = spark.read.format("rumq").option("subscribe", topics).load(str(broker.data))
    return list(rows.orderBy("lsn").collect())


def waited(spark: Any, broker: Rumqd, topics: str, count: int) -> list[Any]:
    """What has been published, once so many are in the log's files."""
    until = time.monotonic() + 60
    while len(found := published(spark, broker, topics)) < count and time.monotonic() < until:
        pass
    return found


def test_the_list_says_every_job(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(JOBS) and len(JOBS) == 9


@pytest.mark.parametrize("job", JOBS)
def test_every_job_has_help_with_an_example(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(job, "--help")
    said = capsys.readouterr().out
    assert f"rumqd spark run {job} " in said.partition("usage")[2].partition("\n\n")[2] and "--checkpoint" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("last", "--data", "nowhere"), 'option path = "nowhere": expected a data directory'),
        (("last", "--broker", "mqtt://x"), "(MQTT is for writing)"),
        (("last", "--option", "subscrib=a"), "did you mean subscribe?"),
        (("last", "--option", "subscribe"), 'option option = "subscribe": expected NAME=VALUE'),
        (("last", "--to", REACHABLE_NEVER), "no connection: "),
        (("last", "--to", REACHABLE_NEVER, "--to-option", "qos=7"), 'option qos = "7": expected'),
        (("last", "--to", "mqtt://x:y"), "expected mqtt://host:1883"),
        (("last", "--to", "http://x"), "mqtts://host:8883, or a folder"),
        (("last", "--lag", REACHABLE_NEVER), "no connection: "),
        (("last", "--topic", "a"), "--to mqtt://host:1883 as well"),
        (("last", "--once"), "--checkpoint DIR as well"),
        (("last", "--checkpoint", "c"), "--once or --every 1s as well"),
        (("last", "--checkpoint", "c", "--every", "soon"), 'option every = "soon": expected'),
        (("last", "--checkpoint", "c", "--once", "--until", "-1h"), "a stream has no end"),
        (("parse", "--bad", "dead"), "--json SCHEMA as well"),
        (("parse", "--json", SCHEMA, "--bad", "dead"), "--to as well"),
        (("replay", "--from", "yesterday"), "startingTimestamp"),
        (("replay",), 'option to = "": expected mqtt://host:1883'),
        (("parse",), 'option json = "": expected columns and their types'),
        (("export",), 'option to = "": expected a folder'),
        (("downsample", "--value", "x", "--window", "often"), 'option window = "often": expected a length of time'),
        (("sessions", "--gap", "5"), 'option gap = "5": expected'),
        (("dedupe", "--within", "soon"), 'option within = "soon": expected'),
        (("geofence", "--fences", "nowhere.json"), "nowhere.json"),
        (("downsample", "--value", "y", "--json", SCHEMA), "there is no column y: "),
        (("downsample", "--value", "qso"), "there is no column qso: did you mean qos?"),
        (("sessions", "--by", "device", "--topics", "dev/{divice}/#"), "no column device: did you mean divice?"),
        (("dedupe", "--by", "m", "--json", SCHEMA), "there is no column m: "),
    ],
)
def test_what_cannot_be_is_one_sentence_before_spark_starts(
    arguments: tuple[str, ...], says: str, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = () if {"--data", "--broker"} & set(arguments) else ("--data", log)
    assert run(*arguments, *place) == 1
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1 and said.startswith("rumqd: ")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("downsample", "--value", "x", "--json", SCHEMA, "--window", "1 parsec"), "1 parsec"),
        (("downsample", "--value", "y", "--json", "struct<`n`: int>"), "there is no column y: "),
        (("last", "--json", "x dubble"), "columns and their types"),
        (("last", "--topics", "a/{b"), "each name once"),
        (("export",), "a folder for Parquet files"),
        (("geofence", "--fences", "nowhere"), "a file of GeoJSON"),
        (("replay", "--speed", "-1"), "how many times faster"),
    ],
)
def test_what_only_spark_can_tell_is_one_sentence_too(
    spark: Any, arguments: tuple[str, ...], says: str, log: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, "--data", log, "--master", "local[2]") == 1
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("rumqd: ")]
    assert len(said) == 1 and says in said[0]


@pytest.mark.spark
def test_rows_are_printed_as_json(spark: Any, log: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("last", "--data", log, "--subscribe", "dev/+/x", "--master", "local[2]") == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert {row["topic"]: row["payload"] for row in rows} == {
        "dev/a/x": '{"n": 4, "x": 4.5}', "dev/b/x": '{"n": 6, "x": 6.5}',
    }  # fmt: skip


@pytest.mark.spark
def test_what_does_not_parse_may_be_left_out(spark: Any, log: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("parse", "--data", log, "--json", SCHEMA) == 0
    assert capfd.readouterr().out.count("\n") > 0


def test_what_does_not_parse_is_a_dead_letter_and_stops_nothing(
    spark: Any, log: str, broker: Rumqd, tmp_path: Path
) -> None:
    """Published, each once over two runs; and as files."""
    source = ["--data", log, "--subscribe", "dev/+/x", "--topics", "dev/{device}/x", "--json", SCHEMA]
    for _ in range(2):
        assert run(
            "parse", *source, "--to", url(broker), "--topic", "parsed/{device}", "--bad", "dead/{topic}",
            "--checkpoint", str(tmp_path / "c"), "--once", "--master", "local[2]",
        ) == 0  # fmt: skip
    good, bad = waited(spark, broker, "parsed/#", 4), waited(spark, broker, "dead/#", 2)
    assert [(row.topic, json.loads(row.payload)["n"]) for row in good] == [
        ("parsed/a", 0), ("parsed/b", 1), ("parsed/a", 4), ("parsed/b", 6),
    ]  # fmt: skip
    assert set(json.loads(good[0].payload)) == {"topic", "partition", "lsn", "ts", "device", "n", "x"}
    told = [(row.topic, bytes(row.payload), {p.key: p.value for p in row.properties}) for row in bad]
    assert told == [
        ("dead/dev/a/x", b"{oops", {"rumq-place": A, "rumq-why": "not JSON"}),
        (
            "dead/dev/b/x",
            b'{"n": "five"}',
            {"rumq-place": B, "rumq-why": f"JSON, but not of the schema: {SCHEMA}"},
        ),
    ]
    out, dead = str(tmp_path / "rows"), str(tmp_path / "dead")
    assert run("parse", *source, "--to", out, "--bad", dead, "--master", "local[2]") == 0
    assert sorted(row.n for row in spark.read.parquet(out).collect()) == [0, 1, 4, 6]
    assert sorted((row.lsn, row.why) for row in spark.read.parquet(dead).collect()) == [
        (2, "not JSON"), (5, f"JSON, but not of the schema: {SCHEMA}"),
    ]  # fmt: skip


@pytest.mark.spark
def test_the_last_of_each_topic_is_retained(spark: Any, log: str, broker: Rumqd, tmp_path: Path) -> None:
    """Four records a batch: of each topic the newest is the one that stays."""
    import paho.mqtt.subscribe as subscribe

    assert run(
        "last", "--data", log, "--to", url(broker), "--checkpoint", str(tmp_path / "c"), "--once",
        "--option", "maxOffsetsPerTrigger=4", "--topic", "last/{topic}", "--subscribe", "dev/#", "--master", "local[2]",
    ) == 0  # fmt: skip
    found = subscribe.simple("last/#", 1, 3, True, broker.address.host, broker.address.port)
    assert {m.topic: (m.payload, m.retain) for m in found} == {
        "last/dev/a/x": (b'{"n": 4, "x": 4.5}', True),
        "last/dev/b/x": (b'{"n": 6, "x": 6.5}', True),
        "last/dev/a/raw": (b"\x00\xff", True),
    }


@pytest.mark.spark
def test_an_export_goes_on_where_it_was(spark: Any, log: str, tmp_path: Path) -> None:
    out = str(tmp_path / "archive")
    for records in (4, 4):
        assert run(
            "export", "--data", log, "--to", out, "--checkpoint", str(tmp_path / "c"), "--once",
            "--option", f"maxOffsetsPerTrigger={records}", "--master", "local[2]",
        ) == 0  # fmt: skip
    assert run("export", "--data", log, "--to", f"{out}-2", "--master", "local[2]") == 0
    for place in (out, f"{out}-2"):
        rows = spark.read.parquet(place).collect()
        assert sorted(row.lsn for row in rows) == list(range(7))
        assert {str(row.day) for row in rows} == {str(row.ts.date()) for row in rows}
        assert [path.name.partition("=")[0] for path in Path(place).glob("day*")] == ["day"]


@pytest.mark.spark
def test_a_replay_publishes_what_was_published_in_its_order(
    spark: Any, log: str, broker: Rumqd, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(
        "replay", "--data", log, "--speed", "0", "--to", url(broker), "--topic", "again/{topic}", "--master", "local[2]"
    ) == 0  # fmt: skip
    assert "rumqd: 7 messages published\n" in capfd.readouterr().err
    found = waited(spark, broker, "again/#", 7)
    before = spark.read.format("rumq").load(log).orderBy("lsn").collect()
    names = ("payload", "qos", "retain", "properties", "content_type")
    assert [[row[n] for n in names] for row in found] == [[row[n] for n in names] for row in before]
    assert [row.topic for row in found] == [f"again/{row.topic}" for row in before]


@pytest.mark.spark
def test_a_loop_is_refused(
    spark: Any, log: str, broker: Rumqd, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    streaming = ("--checkpoint", str(tmp_path / "c"), "--once", "--to", url(broker), "--master", "local[2]")
    assert run("dedupe", "--data", log, "--topic", "dev/{topic}", "--subscribe", "dev/#", *streaming) == 1
    assert "would read what it publishes" in capfd.readouterr().err


@pytest.mark.spark
def test_for_ever_is_until_it_is_stopped(spark: Any, log: str, tmp_path: Path) -> None:
    """And what comes meanwhile is taken, too."""
    root, out = tmp_path / "data", tmp_path / "out"
    write_timed(str(root), [(0.0, "a", [as_json("dev/a/x", n=n) for n in range(3)])])
    ended: list[int] = []
    job = threading.Thread(
        target=lambda: ended.append(run(
            "export", "--data", str(root), "--to", str(out), "--checkpoint", str(tmp_path / "c"), "--every", "50ms",
            "--name", "ever", "--master", "local[2]",
        ))
    )  # fmt: skip
    told: queue.Queue[Lag] = queue.Queue()
    listener = report_lag(spark, told.put)
    job.start()
    assert told.get(timeout=60).batch == 0
    write_timed(str(root), [(60.0, "a", [as_json("dev/a/x", n=n) for n in range(2)])])
    assert told.get(timeout=60).batch == 1
    spark.streams.removeListener(listener)
    for query in spark.streams.active:
        query.stop()
    job.join(60)
    assert ended == [0]
    assert spark.read.parquet(str(out)).count() == 5


@pytest.mark.spark
def test_a_stream_is_bridged_as_it_is_each_message_once(spark: Any, log: str, broker: Rumqd, tmp_path: Path) -> None:
    """With the sink that is once, which has a QoS of its own."""
    assert run(
        "dedupe", "--data", log, "--subscribe", "dev/#", "--to", url(broker), "--topic", "bridged/{topic}",
        "--to-option", "once=true", "--checkpoint", str(tmp_path / "c"), "--once", "--master", "local[2]",
    ) == 0  # fmt: skip
    found = waited(spark, broker, "bridged/#", 7)
    before = spark.read.format("rumq").load(log).collect()
    assert sorted((r.topic, bytes(r.payload)) for r in found) == sorted(
        (f"bridged/{r.topic}", bytes(r.payload)) for r in before
    )
    assert {r.qos for r in found} == {2}
