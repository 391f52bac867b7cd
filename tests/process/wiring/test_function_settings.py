"""Everything that is wrong with functions is named before a start, each with its key."""

from pathlib import Path
from typing import Any

import pytest

from rumq.errors import ConfigError
from rumq.process.broker.start_check import check_function_code
from rumq.process.wiring.function_settings import check_functions, faults_of, rules_of
from rumq.process.wiring.sidecars import check_sidecars, sidecars
from rumq.settings.load import Flag, load_settings
from rumq.settings.show import in_force
from rumq.settings.table import Settings

CODE = "json:dumps"


def settings_of(*functions: dict[str, Any], **sections: Any) -> Settings:
    return load_settings(tree=("test", {"function": list(functions), **sections})).settings


def function(name: str = "mean", **more: Any) -> dict[str, Any]:
    return {"name": name, "filters": ["plant/#"], "code": CODE, "prefix": f"{name}/", **more}


def test_a_function_is_told_what_the_settings_say() -> None:
    (rules,) = rules_of(settings_of(function(timeout_ms=1500, memory_bytes_max="64 MiB", on_failure="pass")))
    assert (rules.timeout_seconds, rules.memory_bytes_max, rules.on_failure) == (1.5, 64 << 20, "pass")
    assert (rules.start, rules.records_max, rules.user) == ("earliest", 10_000, "")
    check_functions(settings_of(function(), function("max")))
    check_functions(settings_of())


@pytest.mark.parametrize(
    ("functions", "key", "words"),
    [
        ([function(), function()], "function.mean.name", "two functions"),
        ([function(filters=["plant/#/x"])], "function.mean.filters", "after #"),
        ([function(filters=["$SYS/#"])], "function.mean.filters", "ordinary topics"),
        ([function(prefix="mean")], "function.mean.prefix", "a / at its end"),
        ([function(prefix="$SYS/")], "function.mean.prefix", "beginning of topic names"),
        ([function(prefix="a/+/")], "function.mean.prefix", "wildcard"),
        ([function(prefix="rumq/function/")], "function.mean.prefix", "beginning of topic names"),
        ([function(prefix="plant/mean/")], "function.mean.prefix", "mean -> mean"),
        ([function(), function("max", filters=["mean/#"], prefix="plant/max/")], "function.mean.prefix", "mean -> max"),
        ([function(code="nowhere.py:mean")], "function.mean.code", "no such file"),
    ],
)
def test_what_is_wrong_has_its_key(functions: list[dict[str, Any]], key: str, words: str) -> None:
    (fault,) = faults_of(settings_of(*functions))
    assert fault.key == key and words in fault.problem
    with pytest.raises(ConfigError):
        check_sidecars(settings_of(*functions))


def test_a_cluster_has_none() -> None:
    settings = load_settings(tree=("test", {"function": [function()]})).settings
    assert not list(faults_of(settings))
    clustered = Settings(function=settings.function, cluster=type(settings.cluster)(name="c"))
    assert [fault.problem for fault in faults_of(clustered)] == [
        "functions run on a broker alone, not in a cluster: run one beside it"
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "a"}, "filters is missing"),
        ({**function(), "filter": "x"}, "did you mean filters"),
        (function(on_failure="skip"), '"hold", "pass" or "refuse"'),
        (function(memory_bytes_max=1), "16 MiB"),
        (function("A B"), "text of a-z"),
    ],
)
def test_a_section_is_checked_as_any(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        settings_of(given)


def test_it_can_be_given_on_one_line_and_is_shown(tmp_path: Path) -> None:
    flag = Flag("function", '[{name="a", filters=["x/#"], code="json:dumps", prefix="a/"}]', "--set")
    loaded = load_settings(flags=[flag])
    assert loaded.settings.function[0].name == "a" and loaded.origins["function.a.code"] == "--set"
    (tmp_path / "config.toml").write_text(in_force(loaded))
    assert load_settings(tmp_path / "config.toml").settings.function == loaded.settings.function
    with pytest.raises(ConfigError, match=r"\[\[function\]\]"):
        load_settings(flags=[Flag("function", "7", "--set")])


def test_a_broker_with_functions_has_a_process_for_them() -> None:
    (sidecar,) = sidecars(settings_of(function()), "/data", ["--config", "c.toml"])
    assert list(sidecar.command)[2:5] == ["rumq", "functions", "run"]
    assert sidecars(settings_of(), "/data", []) == []


def test_code_is_tried_before_a_start(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def transform(batch): return None")
    with pytest.raises(ConfigError, match=r"function\.mean\.code.*it returned NoneType"):
        check_function_code(settings_of(function(code=str(tmp_path / "f.py"))))
    (tmp_path / "f.py").write_text("def transform(batch): return batch")
    check_function_code(settings_of(function(code=str(tmp_path / "f.py"))))
