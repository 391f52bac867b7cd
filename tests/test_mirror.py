"""The test of a module is named after it: `rumq/session/state/wills.py`, `tests/session/state/test_wills.py`.

Of a module without one, a line of `tests/house/places_of_tests.py` says which file tests it, or it does nothing:
Protocols, plain records, constants. None of its functions has a body."""

import ast

import pytest

from tests.house.places_of_tests import IMPORTED, REACHED
from tests.house.product import (
    behaves,
    fault_of_place,
    has_test_of_its_name,
    modules_that_do_something,
)

FLOORS = (
    "rumq/session",
    "rumq/process/node",
    "rumq/shards/delivery",
    "rumq/shards/write_path",
    "rumq/shards/bus",
    "rumq/shards/recovery",
)


@pytest.mark.parametrize("floor", FLOORS)
def test_a_module_that_does_something_has_a_test_of_its_name(floor: str) -> None:
    found = [module for module in modules_that_do_something() if module.is_relative_to(floor)]
    assert [str(module) for module in found if not has_test_of_its_name(module)] == []


def test_of_every_other_module_a_line_says_where_its_test_is() -> None:
    found = [str(module) for module in modules_that_do_something() if not has_test_of_its_name(module)]
    assert [module for module in found if module not in IMPORTED and module not in REACHED] == []


def test_every_line_is_true() -> None:
    """The file exists and imports the module, or reaches it by what the line says; none is left over."""
    lines = [(module, test, "") for module, test in IMPORTED.items()]
    lines += [(module, test, by) for module, (test, by) in REACHED.items()]
    assert {module: fault for module, *where in lines if (fault := fault_of_place(module, *where))} == {}


@pytest.mark.parametrize(
    ("module", "test", "by", "fault"),
    [
        ("commitlog/log/nowhere.py", "tests/commitlog/test_codecs.py", "", "the module is gone"),
        ("commitlog/log/store.py", "tests/commitlog/test_codecs.py", "", "it has a test of its name"),
        ("commitlog/chunk.py", "tests/commitlog/test_nowhere.py", "", "the test is gone"),
        ("commitlog/chunk.py", "tests/mqtt/test_topics.py", "", "the test does not import it"),
        ("commitlog/chunk.py", "tests/commitlog/test_codecs.py", "chunk", "the test imports it"),
        ("commitlog/replica/cut_plan.py", "tests/mqtt/test_topics.py", "a cut", "the test does not say a cut"),
        ("commitlog/replica/cut_plan.py", "tests/mqtt/test_topics.py", "rumq.mqtt.topics", "does not import it"),
        (
            "commitlog/replica/cut_plan.py",
            "tests/mqtt/test_topics.py",
            "commitlog.replica.mirror_partition",
            "the test does not import commitlog.replica.mirror_partition",
        ),
    ],
)
def test_a_line_that_is_not_true_is_seen(module: str, test: str, by: str, fault: str) -> None:
    assert fault in (fault_of_place(module, test, by) or "")


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("LIMIT = 4", False),
        ("class Clock(Protocol):\n    def now(self) -> float:\n        '''Seconds.'''", False),
        ("class Clock(Protocol):\n    async def wait(self) -> None: ...", False),
        ("class Place(NamedTuple):\n    lsn: int = 0", False),
        ("def nothing() -> None:\n    pass", False),
        ("def f():\n    return 1", True),
        ("class Log:\n    def size(self):\n        '''Bytes.'''\n        return 0", True),
        ("async def f():\n    await g()", True),
    ],
)
def test_protocols_records_and_constants_do_nothing(text: str, does: bool) -> None:
    assert behaves(ast.parse(text)) is does
