"""`rumqd show settings`: what is in force, where it came from, and what the table says of it."""

import json
from pathlib import Path

import pytest

from rumq.cli.main import main
from rumq.settings.keys import maybe_key


def shown(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, dict[str, object]]:
    assert main(["show", "settings", *args, "--json"]) == 0
    rows: dict[str, dict[str, object]] = json.loads(capsys.readouterr().out)
    return rows


def test_a_setting_is_shown_with_its_source_and_what_the_table_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[log]\nlinger_ms = 7\n")
    [(name, row)] = shown(capsys, "linger", "--config", str(file)).items()
    key = maybe_key(name)
    assert key is not None and name == "log.linger_ms"
    assert row["value"] == 7 and str(file) in str(row["source"])
    assert row["default"] == key.default != 7 and row["applies"] == key.applies and row["line"] == key.line


def test_a_flag_wins_and_is_named_as_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    row = shown(capsys, "log.linger_ms", "--set", "log.linger_ms=9")["log.linger_ms"]
    assert row["value"] == 9 and "--set" in str(row["source"])


def test_a_pattern_matches_whole_names(capsys: pytest.CaptureFixture[str]) -> None:
    rows = shown(capsys, "mqtt.*_max")
    assert rows and all(name.startswith("mqtt.") and name.endswith("_max") for name in rows)


def test_all_are_shown_for_people_with_when_a_change_applies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "settings"]) == 0
    text = capsys.readouterr().out
    assert (
        "log.linger_ms = " in text and "a change applies: live" in text and "a change applies: after a restart" in text
    )


def test_a_name_that_is_none_says_what_may_be_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "settings", "log.lnger_ms"]) == 2
    assert "did you mean log.linger_ms?" in capsys.readouterr().err
