"""A lake is checked against its manifest, and against the log. docs/guides/lake.md, "Verify"."""

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import pyarrow as pa
import pyarrow.parquet as pq

from commitlog.read.log_reader import LogReader
from rumq.lake.folder import LocalFolder
from rumq.lake.manifest import NAME
from rumq.lake.parquet.verify import ExportFinding, verify
from rumq.lake.schema import writer
from tests.lake.lakes import Log, exported, parquet_files


@pytest.fixture(scope="module")
def log() -> Log:
    made = Log()
    made.fill(10)
    return made


@pytest.fixture
def to(log: Log, tmp_path: Path) -> Path:
    exported(log, tmp_path)
    return tmp_path


def findings(to: Path, log: Log | None = None) -> list[ExportFinding]:
    return list(verify(LocalFolder(str(to)), LogReader(log.files, "data") if log is not None else None))


def test_what_was_exported_is_sound(log: Log, to: Path) -> None:
    assert findings(to, log) == []


def test_a_flipped_bit_is_found_wherever_it_is(to: Path) -> None:
    """Also where Parquet itself would not notice: in statistics, in the page index, in the footer."""
    path = parquet_files(to)[0]
    whole = path.read_bytes()
    for at in range(0, len(whole), len(whole) // 40):
        raw = bytearray(whole)
        raw[at] ^= 4
        path.write_bytes(raw)
        (first, *_) = findings(to)
        assert first.severity == "error" and first.where == str(path.relative_to(to)), at


def test_a_file_that_is_gone_is_found(to: Path) -> None:
    parquet_files(to)[1].unlink()
    assert [finding.what for finding in findings(to)] == ["it is missing"]


def rewritten(path: Path, table: pa.Table) -> None:
    with writer(str(path)) as out:
        out.write_table(table)


def test_a_row_that_is_lost_doubled_or_changed_is_found_in_a_file_of_good_form(to: Path) -> None:
    path = parquet_files(to)[0]
    rows = pq.ParquetFile(path).read()
    rewritten(path, rows.slice(1))
    assert any("79 records" in finding.what for finding in findings(to))
    rewritten(path, pa.concat_tables([rows.slice(0, 79), rows.slice(0, 1)]))
    assert any("twice" in finding.what for finding in findings(to))
    payloads = rows["payload"].to_pylist()
    payloads[5], payloads[6] = payloads[6], payloads[5]
    number = rows.schema.get_field_index("payload")
    rewritten(path, rows.set_column(number, "payload", pa.array(payloads, pa.binary())))
    assert any("payloads differ" in finding.what for finding in findings(to))


def test_a_line_of_the_manifest_that_is_damaged_or_gone_is_found(to: Path) -> None:
    manifest = to / NAME
    first, second = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(first.replace(b'"rows":80', b'"rows":81') + second)
    assert any("line 1 does not match" in finding.what for finding in findings(to))
    manifest.write_bytes(first)
    assert [finding.severity for finding in findings(to)] == ["warning"], "a file that no line has"


def test_the_log_is_asked_too(log: Log, to: Path) -> None:
    """Of another log with the same lsns the payloads differ."""
    other = Log()
    other.fill(5, first=100)
    other.fill(5)
    assert {finding.what for finding in findings(to, other)} == {
        "in the log the payloads differ from those of the file"
    }
