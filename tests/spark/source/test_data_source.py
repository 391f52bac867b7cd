"""What does not fit is refused in one sentence with the way out, where Spark itself would say something longer."""

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")

from pyspark.sql.types import LongType, StringType, StructField, StructType

import rumq.spark
from rumq.sink.sink_options import parse_sink_options
from rumq.spark.source.data_source import RumqDataSource, RumqReader
from rumq.spark.source.row_writer import check_schema
from rumq.spark.source.schema import columns_of, schema_of
from rumq.table.errors import BadColumn, BadOption, WrongWorker
from rumq.table.options import TableOptions, parse


def schema(**kinds: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def test_a_schema_asks_for_columns_that_there_are() -> None:
    with pytest.raises(BadColumn, match=r"column paylod of the schema: no such column; did you mean payload\?"):
        columns_of(TableOptions("d"), schema(paylod=StringType()))
    with pytest.raises(BadColumn, match="column payload of the schema: expected binary"):
        columns_of(TableOptions("d"), schema(payload=StringType()))
    assert columns_of(TableOptions("d", properties="map"), schema_of(TableOptions("d", properties="map")))[
        "properties"
    ] == ("properties_map")


def test_what_cannot_be_published_is_refused_before_a_row_is_sent() -> None:
    target = parse_sink_options({"broker": "mqtt://h"})
    with pytest.raises(BadColumn, match=r"column lsn .*no such column; .*Select what to publish"):
        check_schema(schema(topic=StringType(), lsn=LongType()), target)
    with pytest.raises(BadColumn, match=r"column topic .*expected string"):
        check_schema(schema(topic=LongType()), target)
    with pytest.raises(BadOption, match="a topic, or a column topic"):
        check_schema(schema(payload=StringType()), target)
    once = parse_sink_options({"broker": "mqtt://h", "once": "true"})
    with pytest.raises(BadColumn, match=r"column qos .*once = true publishes with QoS 2"):
        check_schema(schema(topic=StringType(), qos=LongType()), once)
    with pytest.raises(BadOption, match="records of a log are permanent"):
        RumqDataSource({"broker": "mqtt://h"}).writer(schema(payload=StringType()), overwrite=True)


def test_a_worker_of_another_version_is_told_apart(data: str) -> None:
    options = parse({"path": data}, now_us=0)
    reader = RumqReader(options, schema_of(options))
    (task,) = reader.partitions()
    assert sum(batch.num_rows for batch in reader.read(task)) == 300
    planner = "Python 3.11.7 with rumq 0.0.1 (/usr/bin/python3)"
    other = dataclasses.replace(task, rumq_version="0.0.1", driver=planner)
    with pytest.raises(WrongWorker, match=r"the driver runs Python 3.11.7 with rumq 0.0.1 .*PYSPARK_PYTHON"):
        list(reader.read(other))


def test_workers_whose_python_has_no_rumq_are_found_before_a_query(tmp_path: Path) -> None:
    def session(python: str, master: str = "local[2]") -> SimpleNamespace:
        return SimpleNamespace(_sc=SimpleNamespace(master=master, pythonExec=python))

    bare = tmp_path / "python3"
    bare.write_text("#!/bin/sh\necho \"No module named 'rumq'\" >&2\nexit 1\n")
    bare.chmod(0o755)
    with pytest.raises(WrongWorker, match=r"No module named 'rumq'.*set PYSPARK_PYTHON"):
        rumq.spark.check_workers(session(str(bare)))
    with pytest.raises(WrongWorker, match="there is no such program"):
        rumq.spark.check_workers(session("python9"))
    rumq.spark.check_workers(session(sys.executable))  # executors of a cluster: tests/spark/runtime/test_standalone.py
