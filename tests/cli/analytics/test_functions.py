"""`rumqd functions`: what is wrong is said before a start, and what they have done afterwards."""

import json
from pathlib import Path

import pytest

from rumq.cli.main import main
from rumq.functions.function_counts import FOLDER, FunctionCounts, write_figures


def config(folder: Path, text: str) -> str:
    (folder / "f.py").write_text(text)
    path = folder / "config.toml"
    own = f'name = "f"\nfilters = ["a/#"]\ncode = "{folder}/f.py"\nprefix = "b/"'
    path.write_text(f'[[function]]\n{own}\n[data]\ndir = "{folder}"\n')
    return str(path)


def test_a_good_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "check", "--config", config(tmp_path, "def transform(batch): return batch")]) == 0
    assert capsys.readouterr().out == "rumqd: 1 functions are good\n"


@pytest.mark.parametrize("command", [["functions", "check"], ["check"]])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def transform(batch): return 7", "it returned int"),
        ("def transform(): pass", "does not take one batch"),
        ("import nowhere_at_all", "nowhere_at_all"),
    ],
)
def test_a_bad_one_is_named(
    command: list[str], text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--config", config(tmp_path, text)]) == 2
    error = capsys.readouterr().err
    assert "function.f.code" in error and words in error


def test_what_it_checked_is_told_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "check", "--json", "--config", config(tmp_path, "def transform(batch): return 7")]) == 2
    found = json.loads(capsys.readouterr().out)
    assert not found["ok"] and "it returned int" in found["faults"][0]
    assert main(["functions", "check", "--json", "--config", config(tmp_path, "def transform(b): return b")]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "faults": []}


def test_without_functions_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "check"]) == 1
    assert "no [[function]]" in capsys.readouterr().err


def test_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / FOLDER).mkdir()
    counts = FunctionCounts()
    counts.count(records=12_345, refused=2)
    counts.stands("main/g1/p0", behind=7, is_held=True)
    write_figures(tmp_path / FOLDER, {"mean": counts})
    assert main(["functions", "status", "--data", str(tmp_path)]) == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    assert row == ["mean", "12,345", "0", "0", "2", "0", "7", "yes"]
    assert main(["functions", "status", "--data", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean"]["held"] == 1
