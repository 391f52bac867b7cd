"""Finished segments become Parquet, each record once, however often the exporter dies. docs/guides/lake.md."""

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import pyarrow as pa
import pyarrow.parquet as pq

from rumq.lake import columns
from rumq.lake.errors import LakeError
from rumq.lake.folder import LocalFolder
from rumq.lake.manifest import NAME, LakeManifest
from rumq.mqtt.packets import Publish
from tests.commitlog.records import records_of, view, viewed
from tests.lake.lakes import (
    HOUR,
    MADE_NOW,
    SECOND,
    Crash,
    Log,
    crash_at,
    exported,
    lsns_in,
    parquet_files,
    rows_in,
)

GOLDEN = """\
ts: timestamp[us, tz=UTC]
topic: string
topic_offset: int64
lsn: int64
levels: int16
l0: string
l1: string
l2: string
l3: string
l4: string
l5: string
l6: string
l7: string
partition: string
client_id: string
qos: int8
retain: bool
payload: binary
properties: list<element: struct<key: string, value: string>>
  child 0, element: struct<key: string, value: string>
      child 0, key: string
      child 1, value: string
content_type: string
response_topic: string
correlation_data: binary
message_expiry: int64
payload_format: int8"""


@pytest.fixture(scope="module")
def log() -> Log:
    made = Log()
    made.fill(10)
    return made


def test_the_columns_and_their_types_stay_what_they_are(log: Log, tmp_path: Path) -> None:
    exported(log, tmp_path)
    assert pq.read_schema(parquet_files(tmp_path)[0]).to_string(show_field_metadata=False) == GOLDEN


def test_every_finished_record_is_there_once_as_the_log_has_it(log: Log, tmp_path: Path) -> None:
    done = exported(log, tmp_path)
    assert done.rows == log.finished_lsn > 100 and done.segments >= 2
    rows = rows_in(tmp_path)
    seen, _ = viewed(view(log.files), 0, log.finished_lsn)
    assert rows["lsn"].to_pylist() == [s.lsn for s in seen] == list(range(log.finished_lsn))
    written = zip(rows["topic"].to_pylist(), rows["payload"].to_pylist(), strict=True)
    assert [(topic.encode(), payload) for topic, payload in written] == records_of(seen)
    assert rows["topic_offset"].to_pylist() == [s.offset for s in seen]
    assert rows["ts"].cast(pa.int64()).to_pylist() == [s.ts for s in seen]
    assert set(rows["partition"].to_pylist()) == {"main/g1/p0"}
    assert set(rows["client_id"].to_pylist()) == {"device-7"}


def test_what_is_still_written_to_waits(log: Log, tmp_path: Path) -> None:
    exported(log, tmp_path)
    assert log.partition.next_lsn > log.finished_lsn == len(lsns_in(tmp_path))


def test_rows_are_sorted_by_topic_and_its_offset_and_pages_can_be_skipped(log: Log, tmp_path: Path) -> None:
    exported(log, tmp_path)
    for path in parquet_files(tmp_path):
        file = pq.ParquetFile(path)
        rows = file.read()
        order = list(zip(rows["topic"].to_pylist(), rows["topic_offset"].to_pylist(), strict=True))
        assert order == sorted(order) and len({topic for topic, _ in order}) == 5
        group = file.metadata.row_group(0)
        assert [c.column_index for c in group.sorting_columns] == [1, 2]
        for number in range(group.num_columns):
            assert group.column(number).has_column_index or group.column(number).statistics is None
            assert group.column(number).has_offset_index
            assert group.column(number).compression == "ZSTD"


def test_a_topic_is_in_few_row_groups(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reader may skip: the groups whose least and greatest topic say so."""
    monkeypatch.setattr(columns, "GROUP_ROWS", 8)
    exported(log, tmp_path)
    file = pq.ParquetFile(parquet_files(tmp_path)[0]).metadata
    bounds = [file.row_group(n).column(1).statistics for n in range(file.num_row_groups)]
    assert len(bounds) == 10
    for topic in ("plant/0/temp", "plant/3/temp", "plant/4/temp"):
        assert 2 <= sum(each.min <= topic <= each.max for each in bounds) <= 3


def test_the_files_of_an_hour_lie_in_its_folder(tmp_path: Path) -> None:
    log = Log()
    log.fill(2, ts=MADE_NOW + HOUR - SECOND)
    log.fill(8, ts=MADE_NOW + HOUR, first=2)  # in the middle of a segment
    exported(log, tmp_path)
    folders = Counter(str(path.parent.relative_to(tmp_path)) for path in parquet_files(tmp_path))
    assert folders == {"stream=main/dt=2023-11-14/hr=22": 1, "stream=main/dt=2023-11-14/hr=23": 2}
    first = parquet_files(tmp_path)[0]
    assert first.name == f"main-g1-p0000-{0:020d}-{40:020d}.parquet"


def test_topic_levels_are_columns_and_a_deeper_topic_is_cut(tmp_path: Path) -> None:
    log = Log()
    log.publish(
        Publish("a", b"1"), Publish("/b", b"2"), Publish("1/2/3/4/5/6/7/8/9", b"3"), Publish("c/", b""),
        Publish("straße/é", b"5"),
    )  # fmt: skip
    log.fill(4)
    exported(log, tmp_path)
    rows = rows_in(tmp_path).slice(0, 5).to_pylist()
    levels = [[row[f"l{n}"] for n in range(8)] for row in rows]
    assert levels[0] == ["a"] + [None] * 7
    assert levels[1] == ["", "b"] + [None] * 6
    assert levels[2] == list("12345678") and rows[2]["levels"] == 9
    assert levels[3] == ["c", ""] + [None] * 6 and rows[3]["payload"] == b""
    assert levels[4][:2] == ["straße", "é"]


def test_properties_are_columns_repeated_ones_kept(tmp_path: Path) -> None:
    log = Log()
    log.publish(
        Publish(
            "t", b"x", 1, True, packet_id=1,
            properties={
                "user_properties": [("k", "1"), ("k", "2"), ("ä", "")], "content_type": "text/plain",
                "response_topic": "answer", "correlation_data": b"\xff\0", "message_expiry_interval": 4_000_000_000,
                "payload_format_indicator": 1,
            },
        ),
        Publish("t", b"none"),
    )  # fmt: skip
    log.publish(Publish("t", b"old"), version=4, client_id="pump")
    log.fill(4)
    exported(log, tmp_path)
    first, second, third = rows_in(tmp_path).slice(0, 3).to_pylist()
    assert first["properties"] == [{"key": "k", "value": "1"}, {"key": "k", "value": "2"}, {"key": "ä", "value": ""}]
    assert (first["content_type"], first["response_topic"]) == ("text/plain", "answer")
    assert first["correlation_data"] == b"\xff\0" and first["message_expiry"] == 4_000_000_000
    assert first["payload_format"] == 1 and (first["qos"], first["retain"]) == (1, True)
    assert (second["qos"], second["content_type"], second["message_expiry"]) == (0, None, None)
    assert (third["payload"], third["client_id"]) == (b"old", "pump")


def test_a_second_run_adds_only_what_is_new(tmp_path: Path) -> None:
    log = Log()
    log.fill(5)
    first = exported(log, tmp_path)
    again = exported(log, tmp_path)
    assert first.segments == 1 and again.segments == 0
    log.fill(4, first=5)
    assert exported(log, tmp_path).segments == 1
    assert lsns_in(tmp_path) == list(range(log.finished_lsn))


def test_a_crash_at_any_step_loses_nothing_and_doubles_nothing(log: Log, tmp_path: Path) -> None:
    """The next run finishes or redoes it; every step of an export of two segments is tried."""
    steps: list[str] = []
    exported(log, tmp_path / "whole", step=crash_at(0, steps), marks=True)
    assert {"written", "synced", "renamed", "checked", "committed", "marked"} == set(steps)
    for number in range(1, len(steps) + 1):
        to = tmp_path / str(number)
        with pytest.raises(Crash):
            exported(log, to, step=crash_at(number, []), marks=True)
        assert len(lsns_in(to)) == len(set(lsns_in(to))), "not even who knows no manifest sees a record twice"
        exported(log, to, marks=True)
        assert lsns_in(to) == list(range(log.finished_lsn))
        assert not list(to.rglob("*.new"))
        held = {file.path for file in LakeManifest(LocalFolder(str(to))).files()}
        assert held == {str(path.relative_to(to)) for path in parquet_files(to)}


def test_what_a_crash_left_half_written_goes_at_the_next_start(log: Log, tmp_path: Path) -> None:
    exported(log, tmp_path)
    stray = parquet_files(tmp_path)[0].with_name("_main-g1-p0000-half.parquet.new")
    stray.write_bytes(b"PAR1")
    own = tmp_path / "notes.txt"
    own.write_text("not ours: it stays")
    exported(log, tmp_path)
    assert not stray.exists() and own.exists()


def test_a_torn_line_of_the_manifest_was_never_written(log: Log, tmp_path: Path) -> None:
    exported(log, tmp_path)
    manifest = tmp_path / NAME
    whole = manifest.read_bytes()
    for cut in (1, 40, len(whole.splitlines()[-1])):
        manifest.write_bytes(whole[:-cut])
        exported(log, tmp_path)
        assert lsns_in(tmp_path) == list(range(log.finished_lsn))
        assert manifest.read_bytes() == whole


def test_a_damaged_line_of_the_manifest_stops_the_export(log: Log, tmp_path: Path) -> None:
    exported(log, tmp_path)
    manifest = tmp_path / NAME
    raw = bytearray(manifest.read_bytes())
    raw[60] ^= 1
    manifest.write_bytes(raw)
    with pytest.raises(LakeError, match="line 1"):
        exported(log, tmp_path)


def test_another_log_is_refused(log: Log, tmp_path: Path) -> None:
    exported(log, tmp_path)
    other = Log()
    other.fill(1)
    with pytest.raises(LakeError, match="folder of its own"):
        exported(other, tmp_path)


def test_one_process_at_a_time_exports_to_a_folder(log: Log, tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path))
    folder.lock()
    with pytest.raises(LakeError, match="another process"):
        exported(log, tmp_path)
    folder.unlock()
    assert exported(log, tmp_path).rows


def test_what_is_damaged_in_the_log_is_a_row_of_the_gaps(tmp_path: Path) -> None:
    log = Log()
    log.fill(5)
    log.damage(0, 1)
    done = exported(log, tmp_path)
    assert done.gaps == 1 and done.rows == log.finished_lsn - 20
    gaps = pq.read_table(tmp_path / "_gaps").to_pylist()
    assert [(g["partition"], g["base_lsn"], g["next_lsn"]) for g in gaps] == [("main/g1/p0", 20, 40)]
    assert "frames do not match their checksum" in gaps[0]["why"]
    assert sorted([*lsns_in(tmp_path), *range(20, 40)]) == list(range(log.finished_lsn))


def test_an_empty_folder_of_a_log_without_records_is_no_fault(tmp_path: Path) -> None:
    assert exported(Log(), tmp_path).segments == 0


def test_what_retention_took_first_is_a_gap_too(tmp_path: Path) -> None:
    log = Log()
    log.fill(5)
    exported(log, tmp_path)
    had = log.finished_lsn
    log.fill(10, first=5)
    removal = log.partition.take_removal(view(log.files).segments()[2].base_lsn)
    assert removal is not None
    removal.run()
    exported(log, tmp_path)
    (gap,) = pq.read_table(tmp_path / "_gaps").to_pylist()
    assert (gap["base_lsn"], gap["next_lsn"]) == (had, removal.first_lsn) and "retention" in gap["why"]
    whole = [*lsns_in(tmp_path), *range(gap["base_lsn"], gap["next_lsn"])]
    assert sorted(whole) == list(range(log.finished_lsn))
