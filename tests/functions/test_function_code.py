"""A function is found by what the settings call it; whatever is wrong is a sentence."""

from pathlib import Path

import pytest

from rumq.functions.function_code import BadFunction, load_function, maybe_problem, split_code


@pytest.mark.parametrize(
    ("code", "place", "name"),
    [
        ("f.py", "f.py", "transform"),
        ("/a/b.py:mean", "/a/b.py", "mean"),
        ("plant.functions:mean", "plant.functions", "mean"),
        ("plant", "plant", "transform"),
    ],
)
def test_a_name_has_a_place_and_a_function(code: str, place: str, name: str) -> None:
    assert split_code(code) == (place, name)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("nowhere.py", "no such file"),
        ("nowhere.py:mean", "no such file"),
        ("f.py:me an", "no name of a function"),
        ("a-b:mean", "no module"),
        ("", "no module"),
    ],
)
def test_what_is_not_there_is_seen_without_importing_it(code: str, words: str) -> None:
    assert words in (maybe_problem(code) or "")
    with pytest.raises(BadFunction, match=words):
        load_function(code)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "has no transform"),
        ("transform = 1", "is a int, no function"),
        ("def transform(): pass", "does not take one batch"),
        ("def transform(a, b): pass", "does not take one batch"),
        ("def transform(*, batch): pass", "does not take one batch"),
        ("async def transform(batch): pass", "is async"),
    ],
)
def test_what_is_no_function_of_a_batch_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(text)
    with pytest.raises(BadFunction, match=words):
        load_function(str(tmp_path / "f.py"))


@pytest.mark.parametrize(
    "text", ["def transform(b): return b", "transform = len", "def transform(b, more=1): return b"]
)
def test_a_file_gives_its_function(text: str, tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(text)
    assert callable(load_function(str(tmp_path / "f.py")))


def test_a_file_imports_what_stands_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend("/nowhere")  # what is put before it is taken back
    (tmp_path / "beside_it.py").write_text("VALUE = 7")
    (tmp_path / "f.py").write_text("import beside_it\ndef mean(batch): return beside_it.VALUE")
    assert load_function(f"{tmp_path}/f.py:mean")(None) == 7


def test_a_module_that_is_missing_is_named_and_a_fault_inside_it_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BadFunction, match="no module rumq_nowhere"):
        load_function("rumq_nowhere.functions:mean")
    (tmp_path / "needs_more.py").write_text("import rumq_nowhere_else")
    with pytest.raises(ModuleNotFoundError, match="rumq_nowhere_else"):
        load_function("needs_more:mean")
    assert load_function("json:dumps")([1]) == "[1]"
