"""`rumqd bridge status` says what each bridge has done."""

import json
import os
from pathlib import Path

import pytest

from rumq.bridge.counts import FILE, FOLDER, OUT, BridgeCounts, write_elsewhere, write_figures
from rumq.cli.main import main


def test_status_of_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / FOLDER).mkdir()
    counts = BridgeCounts(is_up=True)
    counts.relayed[OUT].messages = 1234
    write_figures(tmp_path / FOLDER, {"centre": counts})
    assert main(["bridge", "status", "--data", str(tmp_path)]) == 0
    head, out, into = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "bridge", "messages", "bytes", "doubtful", "refused", "looped", "dropped", "unmapped", "connected",
    ]  # fmt: skip
    assert out.split() == ["centre", "out", "1,234", "0", "0", "0", "0", "0", "0", "yes"]
    assert into.split()[:3] == ["centre", "in", "0"]
    assert main(["bridge", "status", "--data", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["centre"]["up"] == 1


def test_once_their_process_is_gone_none_is_connected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / FOLDER).mkdir()
    write_figures(tmp_path / FOLDER, {"centre": BridgeCounts(is_up=True)})
    os.utime(tmp_path / FOLDER / FILE, (0, 0))
    assert main(["bridge", "status", "--data", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split()[-1] == "no"


def test_without_a_data_directory_there_is_none_to_run(tmp_path: Path) -> None:
    assert main(["bridge", "run", "--data", str(tmp_path / "none")]) == 3


def test_status_on_a_node_that_does_not_run_them_says_which_one_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / FOLDER).mkdir()
    write_figures(tmp_path / FOLDER, {})
    write_elsewhere(tmp_path / FOLDER, "node n2 runs the bridges: ask there")
    assert main(["bridge", "status", "--data", str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == {} and said.err == "node n2 runs the bridges: ask there\n"
    write_elsewhere(tmp_path / FOLDER, "")
    assert main(["bridge", "status", "--data", str(tmp_path)]) == 0
    assert not capsys.readouterr().err
