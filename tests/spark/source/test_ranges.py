"""One range of records, two forms: what the log no longer has comes from the lake. Without Spark's engine."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable

from rumq.lake.lake_reader import lake_at, read
from rumq.spark.source.data_source import RumqReader
from rumq.spark.source.ranges import Range
from rumq.spark.source.schema import schema_of
from rumq.spark.source.stream_reader import RumqStreamReader
from rumq.table.errors import BadOption, DataLoss
from rumq.table.options import parse
from tests.commitlog.records import NOW
from tests.spark.histories import FULL_HOUR, History

Place = Callable[[str], dict[str, str]]
P0, P1 = "main/g1/p0", "main/g1/p1"


def reader(history: History, **given: str) -> RumqReader:
    where = {} if "broker" in given else {"path": history.data}
    options = parse({**where, **given}, now_us=NOW)
    return RumqReader(options, schema_of(options))


def table(reading: Any, tasks: list[Range]) -> pa.Table:
    schema = to_arrow_schema(reading._schema, timezone="UTC")
    return pa.Table.from_batches([batch for task in tasks for batch in reading.read(task)], schema)


def rows(history: History, **given: str) -> pa.Table:
    reading = reader(history, **given)
    return table(reading, reading.partitions())


def lsns(found: pa.Table) -> dict[str, list[int]]:
    by: dict[str, list[int]] = {P0: [], P1: []}
    for name, lsn in zip(found["partition"].to_pylist(), found["lsn"].to_pylist(), strict=True):
        by[name].append(lsn)
    return by


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[History, dict[str, pa.Table]]]:
    """A history of which three segments are left, and its rows as the whole log gave them."""
    history = History(tmp_path_factory.mktemp("history"))
    history.publish(60)
    forms = {name: rows(history, **given, lake="none") for name, given in FORMS.items()}
    history.export()
    history.remove(3)
    yield history, forms
    history.close()


FORMS: dict[str, dict[str, str]] = {
    "all": {},
    "map": {"properties": "map"},
    "kafka": {"schemaStyle": "kafka", "includeHeaders": "true"},
    "filtered": {"subscribe": "plant/+/temp, plant/3/#, other/none"},
    "exact": {"subscribe": "plant/5/speed"},
    "first": {"subscribe": "other"},
    "last": {"subscribe": "plant/6/temp"},
    "pattern": {"subscribePattern": "plant/[12]/.*"},
}


@pytest.mark.parametrize("form", FORMS)
def test_the_lake_gives_the_rows_that_the_log_gave(
    before: tuple[History, dict[str, pa.Table]], place: Place, form: str
) -> None:
    history, forms = before
    assert history.view(0).first_lsn > 300
    assert rows(history, **FORMS[form], **place(history.data)).equals(forms[form]) and len(forms[form]) > 10


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 600), st.integers(0, 600), st.integers(1, 5))
def test_any_range_is_there_once_in_order_however_it_is_cut(
    before: tuple[History, dict[str, pa.Table]], one: int, other: int, parts: int
) -> None:
    history, _ = before
    start, end = min(one, other), max(one, other)
    found = rows(
        history,
        assign=f'["{P0}"]',
        startingOffsets=f'{{"{P0}": {start}}}',
        endingOffsets=f'{{"{P0}": {end}}}',
        minPartitions=str(parts),
    ) if start < end else None  # fmt: skip
    assert found is None or found["lsn"].to_pylist() == list(range(start, end))


def test_a_time_is_looked_for_in_both(before: tuple[History, dict[str, pa.Table]], place: Place) -> None:
    history, _ = before
    where = place(history.data)
    for chunk in (0, 1, 5, 6, 35, 58):
        exact = lsns(rows(history, startingTimestamp=str(FULL_HOUR // 1000 + chunk * 100_000), **where))
        after = lsns(rows(history, startingTimestamp=str(FULL_HOUR // 1000 + chunk * 100_000 + 1), **where))
        assert exact == {P0: list(range(10 * chunk, 600)), P1: list(range(10 * chunk, 600))}
        assert after == {P0: list(range(10 * chunk + 10, 600)), P1: list(range(10 * chunk + 10, 600))}
        until = lsns(rows(history, endingTimestamp=str(FULL_HOUR // 1000 + chunk * 100_000), **where))
        assert until == {P0: list(range(10 * chunk)), P1: list(range(10 * chunk))}


def test_without_the_lake_the_log_is_what_there_is(before: tuple[History, dict[str, pa.Table]]) -> None:
    history, _ = before
    first = history.view(0).first_lsn
    assert lsns(rows(history, lake="none"))[P0] == list(range(first, 600))
    with pytest.raises(DataLoss, match=f"records 0 to {first - 1} of {P0}"):
        rows(history, lake="none", startingOffsets=f'{{"{P0}": 0, "{P1}": -2}}')
    with pytest.raises(BadOption, match=r"lake = .*a lake that can be read .*none reads the log alone"):
        rows(history, lake=history.data)


def test_a_stream_that_was_away_longer_than_the_log_goes_on_in_the_lake(
    before: tuple[History, dict[str, pa.Table]], place: Place
) -> None:
    history, forms = before
    options = parse(place(history.data), now_us=NOW, streaming=True)
    stream = RumqStreamReader(options, schema_of(options))
    first = stream.initialOffset()
    assert first["lsn"] == {P0: 0, P1: 0}
    end = stream.latestOffset(first, ReadAllAvailable())
    tasks: Any = stream.partitions(first, end)
    assert table(stream, tasks).equals(forms["all"])


def test_a_bound_in_bytes_goes_through_both(before: tuple[History, dict[str, pa.Table]]) -> None:
    history, _ = before
    options = parse({"path": history.data, "maxBytesPerTrigger": "9000"}, now_us=NOW, streaming=True)
    stream = RumqStreamReader(options, schema_of(options))
    offsets = [stream.initialOffset()]
    while (more := stream.latestOffset(offsets[-1], stream.getDefaultReadLimit())) != offsets[-1]:
        offsets.append(more)
    ends = [each["lsn"][P0] for each in offsets]
    steps = [b - a for a, b in pairwise(ends)]
    assert ends[-1] == 600 and 10 < len(steps) < 40 and all(10 <= step <= 60 for step in steps[:-1])


# What happens meanwhile


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(tmp_path)
    made.publish()
    yield made
    made.close()


def test_what_goes_to_the_lake_between_planning_and_reading_is_read_there(history: History) -> None:
    history.export()
    reading = reader(history)
    tasks = reading.partitions()
    history.publish()
    history.export(merge_at=10**9)  # what the manifest named when it was planned is gone
    history.remove(1)
    assert history.view(0).first_lsn > 200
    assert lsns(table(reading, tasks)) == {P0: list(range(200)), P1: list(range(200))}


def test_a_file_that_is_merged_while_it_is_read_is_found_under_its_new_name(history: History) -> None:
    history.export()
    history.remove(1)
    reading = reader(history)
    tasks = reading.partitions()
    known = lake_at(history.lake)
    history.export(merge_at=10**9)
    for path in [file.path for file in known.manifest.files()]:
        assert not (Path(history.lake) / path).exists()
    import rumq.lake.lake_reader as module

    module._known[history.lake] = Path(history.lake, "_rumq/manifest.jsonl").stat().st_size, *known
    assert lsns(table(reading, tasks)) == {P0: list(range(200)), P1: list(range(200))}


def test_a_reader_that_has_some_files_of_a_range_goes_on_behind_them(history: History) -> None:
    history.export()
    known = lake_at(history.lake)
    end = known.manifest.partition(P0).next_lsn
    reading = read(known, P0, 0, end, ["lsn"])
    first = next(reading)
    history.export(merge_at=10**9)
    found = [lsn for part in (first, *reading) for lsn in part["lsn"].to_pylist()]
    assert found == list(range(end)) and len(first) < end


@pytest.mark.parametrize("parts", [1, 45])
def test_what_is_damaged_in_the_log_is_read_in_the_lake(history: History, parts: int) -> None:
    history.export()
    first = min(Path(history.data, "main/g1/p0").glob("*.seg"))
    content = bytearray(first.read_bytes())
    content[4096 + 130] ^= 1
    first.write_bytes(content)
    with pytest.raises(DataLoss, match=f"records 0 to 9 of {P0} cannot be read"):
        rows(history, lake="none")
    assert lsns(rows(history, minPartitions=str(parts)))[P0] == list(range(200))


def test_behind_the_end_of_the_log_nothing_is_looked_for(history: History) -> None:
    history.export()
    reading = reader(history)
    (task, *_) = reading.partitions()
    with pytest.raises(
        DataLoss,
        match=r"records 200 to 209 .*the log ends at 200: its end was lost, or it is another log\. Keep",
    ):
        table(reading, [replace(task, end=210)])


def test_loss_is_told_only_where_neither_has_the_records(history: History) -> None:
    history.export()
    had = lake_at(history.lake).manifest.partition(P0).next_lsn
    history.publish()
    history.remove(2)  # of what was never exported
    taken = history.view(0).first_lsn
    lost = f"records {had} to {taken - 1} of {P0} cannot be read: retention"
    with pytest.raises(DataLoss, match=f"{lost} has removed them, and the lake does not have them"):
        rows(history)
    history.export()
    with pytest.raises(DataLoss, match=f"{lost} removed them before they were exported"):
        rows(history)
    left = lsns(rows(history, failOnDataLoss="false"))
    assert left[P0] == [*range(had), *range(taken, 400)]


def test_a_partition_that_only_the_lake_has_is_read(history: History) -> None:
    history.export()
    end = lake_at(history.lake).manifest.partition(P1).next_lsn
    shutil.copytree(history.data, f"{history.data}.copy")
    shutil.rmtree(f"{history.data}.copy/main/g1/p1")
    history.data += ".copy"
    assert lsns(rows(history)) == {P0: list(range(200)), P1: list(range(end))}


def test_the_lake_of_another_log_is_refused(history: History, tmp_path: Path) -> None:
    history.export()
    other = History(tmp_path / "other")
    other.publish()
    other.publish()
    with pytest.raises(BadOption, match=r"lake = .*its records of main/g1/p0 are another's"):
        rows(other, lake=history.lake)
    other.close()
