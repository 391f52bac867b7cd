"""The command of the long tests: its table says how each file ended, and what did not pass does not count as good."""

from pathlib import Path

import pytest

from tests import long

GOOD = """
import pytest

@pytest.mark.long
def test_good(): pass

@pytest.mark.long
def test_absent(): pytest.skip("no")

def test_short(): assert False
"""
BAD = """
import pytest

@pytest.mark.long
def test_bad(): assert 1 == 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "test_a.py").write_text(GOOD)
    (tmp_path / "test_b.py").write_text(BAD)
    (tmp_path / "test_c.py").write_text("def test_short(): assert False")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = long: x\n")
    monkeypatch.setattr(long, "ROOT", tmp_path)
    return tmp_path


def test_each_file_has_its_row(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = folder / "table.md"
    monkeypatch.setattr("sys.argv", ["long", "--table", str(table), "."])
    assert long.main() == 1
    said = capsys.readouterr()
    assert said.out == table.read_text() and "assert 1 == 2" in said.err
    rows = [line.split(" | ")[:2] for line in said.out.splitlines() if "test_" in line]
    assert rows == [["| `test_a.py`", "1 passed, 1 skipped, 1 deselected"], ["| `test_b.py`", "1 failed"]]


def test_what_is_stopped_is_not_good(folder: Path) -> None:
    ended = long.run("test_a.py", 0.0)
    assert not ended.is_good and ended.result == "stopped after 0 minutes"
