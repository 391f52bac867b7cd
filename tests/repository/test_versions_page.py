"""docs/reference/versions.md says what the code has: numbers of formats, tests that exist, releases with data."""

import re
from pathlib import Path

import pytest

from rumq.spark.source.stream_reader import OFFSETS_VERSION
from tests.upgrade import formats
from tests.upgrade.test_upgrade import RELEASED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/versions.md").read_text()
ROWS = {
    cells[1].strip(): cells[2].strip()
    for line in PAGE.splitlines()
    if line.startswith("| ") and (cells := line.split("|"))
}
CURRENT = formats.current()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("data directory (`FORMAT`)", f"`{CURRENT['data directory']}`"),
        ("log segment", f"{CURRENT['segment']}; of a chunk in it {CURRENT['chunk']}"),
        ("index, names (`.idx`, `topics.snap`)", f"`{CURRENT['index']}`, `{CURRENT['topics.snap']}`"),
        (
            "links between nodes, records in etcd",
            f"feature level {CURRENT['feature level of a cluster']}; fields by place",
        ),
        ("gateway's history", f"`{CURRENT['history of the gateway']}`"),
        ("checkpoint of Spark", str(OFFSETS_VERSION)),
    ],
)
def test_a_format_has_the_number_of_the_code(row: str, said: str) -> None:
    assert ROWS[row] == said


def test_each_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 5
    assert [name for path, name in named if f"def {name}(" not in (ROOT / path).read_text()] == []


def test_each_released_version_is_named() -> None:
    (row,) = (each for each in ROWS if each.startswith("any released version: "))
    assert set(row.partition(": ")[2].split(", ")) == set(RELEASED)


def test_modules_whose_names_stay_exist() -> None:
    names = re.findall(r"`(rumq(?:\.\w+)?)`", PAGE.partition("Python names in")[2].partition("that pages")[0])
    assert names == ["rumq", "rumq.spark", "rumq.client", "rumq.lake"]
    assert all((ROOT / name.replace(".", "/")).is_dir() for name in names)
