"""What a query reads is settled when it is planned, and a range always gives the same rows or says why not."""

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from commitlog import RealFiles
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView
from rumq.table.errors import BadOption, DataLoss
from rumq.table.options import parse
from rumq.table.partition_ranges import partition_ranges
from rumq.table.plan import LsnSpan, cut, spans
from rumq.table.scan import Selection, scan
from tests.commitlog.records import NOW
from tests.spark.logs import Publisher, message, store_at

LSN = pa.schema([("lsn", pa.int64())])


def planned(root: str, **given: str) -> list[LsnSpan]:
    options = parse({"path": root, **given}, now_us=NOW)
    return spans(options, partition_ranges(options))


def view(root: str) -> PartitionView:
    found = LogReader(RealFiles(), root).maybe_partition("main/g1/p0")
    assert found is not None
    return found


def lsns(root: str, start: int, end: int, *, fail_on_data_loss: bool = True) -> list[int]:
    batches = scan(view(root), start, end, Selection({"lsn": "lsn"}, LSN), fail_on_data_loss=fail_on_data_loss)
    return [lsn for batch in batches for lsn in batch.column(0).to_pylist()]


def without_first_segments(root: str, count: int) -> int:
    """As retention leaves it: the manifest says so before the files go."""
    from commitlog.format.manifest import Manifest

    directory = f"{root}/main/g1/p0"
    paths = sorted(Path(directory).glob("*.seg"))
    first = int(paths[count].name[:20])
    manifest = Manifest(RealFiles(), directory)
    manifest.rewrite([*manifest.load(), {"edit": "first", "lsn": first}])
    manifest.close()
    for path in paths[:count]:
        path.unlink()
    return first


def test_any_range_gives_the_rows_it_names(data: str) -> None:
    for start, end in ((0, 300), (17, 23), (20, 40), (299, 300), (5, 5)):
        assert lsns(data, start, end) == list(range(start, end))


def test_what_retention_takes_between_planning_and_reading_is_told(tmp_path: Path) -> None:
    root = str(tmp_path / "d")
    store = store_at(root, segment_bytes_max=10_000)
    publisher = Publisher(store.own[0])
    for n in range(40):
        publisher.chunk([message("a", b"x" * 50)] * 20, NOW + n)
    store.close()
    first = without_first_segments(root, 1)
    with pytest.raises(DataLoss, match=rf"records 0 to {first - 1} of main/g1/p0 .*retention has removed them"):
        lsns(root, 0, 800)
    assert lsns(root, 0, 800, fail_on_data_loss=False) == list(range(first, 800))
    with pytest.raises(DataLoss, match="retention has removed them"):
        planned(root, startingOffsets='{"main/g1/p0": 0}')
    assert planned(root) == [LsnSpan("main/g1/p0", first, 800)]


def test_a_log_that_ends_before_a_range_is_told(data: str) -> None:
    with pytest.raises(DataLoss, match=r"records 300 to 309 .*the log ends at 300"):
        lsns(data, 290, 310)


def test_offsets_name_exactly_the_partitions_that_are_read(tmp_path: Path) -> None:
    root = str(tmp_path / "d")
    store_at(root, partitions=2).close()
    with pytest.raises(BadOption, match=r"main/g1/p1.*exactly the partitions"):
        planned(root, startingOffsets='{"main/g1/p0": 0}')
    with pytest.raises(BadOption, match=r"main/g1/p2.*exactly the partitions"):
        planned(root, startingOffsets='{"main/g1/p0": 0, "main/g1/p1": 0, "main/g1/p2": 0}')
    assert planned(root, startingOffsets='{"main/g1/p0": 0}', assign='["main/g1/p0"]') == []


def test_minus_two_and_minus_one_are_the_first_and_the_end(data: str) -> None:
    assert planned(data, startingOffsets='{"main/g1/p0": -2}') == [LsnSpan("main/g1/p0", 0, 300)]
    assert planned(data, startingOffsets='{"main/g1/p0": -1}') == []


def test_a_time_with_no_record_behind_it_is_latest_or_earliest_or_an_error(data: str) -> None:
    late = str(NOW // 1000 + 10**6)
    assert planned(data, startingTimestamp=late) == []
    earliest = planned(data, startingTimestamp=late, startingOffsetsByTimestampStrategy="earliest")
    assert earliest == [LsnSpan("main/g1/p0", 0, 300)]
    with pytest.raises(BadOption, match="a time that has a record"):
        planned(data, startingTimestamp=late, startingOffsetsByTimestampStrategy="error")


def test_a_directory_without_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=r"path = .*a data directory of rumq"):
        planned(str(tmp_path))


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 10_000)), max_size=4),
    st.integers(0, 9), st.integers(1, 5000), st.integers(1, 4),
)  # fmt: skip
def test_tasks_are_the_spans_cut_in_order(
    ranges: list[tuple[int, int]], partitions_min: int, records_max: int, cores: int
) -> None:
    found = [LsnSpan(f"main/g1/p{n}", start, start + count) for n, (start, count) in enumerate(ranges)]
    tasks = cut(found, partitions_min, records_max, cores)
    assert all(0 < task.end - task.start <= records_max for task in tasks)
    total = sum(span.end - span.start for span in found)
    assert len(tasks) >= min(partitions_min, total)
    expected = [(s.partition, lsn) for s in found for lsn in range(s.start, s.end)]
    assert [(t.partition, lsn) for t in tasks for lsn in range(t.start, t.end)] == expected
