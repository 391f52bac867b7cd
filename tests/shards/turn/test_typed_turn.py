"""The typed turn is the same source as the plain one: whatever clients do, the compiled product sends each the same
bytes, and writes the same log and journal, as the product run as Python (docs/decisions/0066-one-typed-turn.md)."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rumq.shards.turn.turn
from rumq.version import COMPILED, kernels
from tests.conformance import wire
from tests.shards.turn.played import played

ROOT = Path(__file__).parents[3]
CLIENTS = 4
TOPICS = ("a", "a/b", "c", "d/e/f")
FILTERS = ("a", "a/#", "+", "#", "c", "d/+/f", "$share/g/#")
SIZES = (0, 1, 40, 130, 700)  # bytes of a payload: one and two bytes of length, more than a socket holds


class Plain:
    """The product that is not compiled, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        without = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
        for package in ("rumq", "router", "commitlog"):
            shutil.copytree(ROOT / package, folder / package, ignore=without)
        environment = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.shards.turn.played"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder,
        )  # fmt: skip
        self.turn = self._line()["turn"]

    def _line(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def played(self, session: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(session) + "\n")
        self._process.stdin.flush()
        return self._line()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plain]:
    if kernels() != COMPILED:
        pytest.skip(f"kernels: {kernels()}")
    made = Plain(tmp_path_factory.mktemp("plain"))
    assert made.turn.endswith(".py") and not str(rumq.shards.turn.turn.__file__).endswith(".py")
    yield made
    made.end()


def packets(version: int) -> st.SearchStrategy[bytes]:
    """What a client says beside acknowledgements."""
    ids = st.integers(1, 9)
    subscriptions = st.lists(
        st.tuples(st.sampled_from(FILTERS), st.integers(0, 2)), min_size=1, max_size=3, unique_by=lambda each: each[0]
    )
    publishes = [
        st.builds(
            lambda topic, size, qos, packet_id, retain: wire.publish(
                topic, bytes([65 + size % 20]) * size, qos, packet_id, retain=retain, version=version
            ),
            st.sampled_from(TOPICS),
            st.sampled_from(SIZES),
            st.integers(0, 2),
            ids,
            retain,
        )
        for retain in (st.just(False), st.just(False), st.just(False), st.booleans())
    ]
    return st.one_of(
        *publishes, *publishes,
        st.builds(lambda packet_id, asked: wire.subscribe(packet_id, asked, version=version), ids, subscriptions),
        st.builds(
            lambda packet_id, name: wire.unsubscribe(packet_id, [name], version=version), ids, st.sampled_from(FILTERS)
        ),
        st.just(wire.frame(0xC0)),
        st.just(wire.frame(0xE0)),
    )  # fmt: skip


@st.composite
def sessions(draw: st.DrawFn) -> dict[str, Any]:
    versions = [draw(st.sampled_from([4, 5])) for _ in range(CLIENTS)]
    clients, steps = st.integers(0, CLIENTS - 1), list[list[Any]]()
    for number, version in enumerate(versions):
        steps.append(["connect", number, version, draw(st.booleans())])
        asked = (draw(st.sampled_from(FILTERS[:4])), draw(st.integers(0, 2)))
        steps.append(["say", number, wire.subscribe(1, [asked], version=version).hex()])
    steps += [["turn"], ["work"], ["turn"]]
    often = ["say"] * 8 + ["turn"] * 8 + ["answer"] * 4 + ["read"] * 3 + ["work"] * 2
    names = st.sampled_from([*often, "leave", "connect"])
    for name in draw(st.lists(names, min_size=20, max_size=80)):
        number = draw(clients)
        if name == "say":
            some = draw(st.lists(packets(versions[number]), min_size=1, max_size=4))
            steps.append([name, number, b"".join(some).hex()])
        elif name in ("read", "answer"):
            steps.append([name, number, draw(st.integers(1, 900))])
        elif name == "connect":
            steps.append([name, number, versions[number], draw(st.booleans())])
        else:
            steps.append([name] if name in ("turn", "work") else [name, number])
    return {"durability": draw(st.sampled_from(["process", "disk"])), "at_once": draw(st.booleans()), "steps": steps}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(session=sessions())
def test_what_is_compiled_sends_and_writes_what_plain_python_does(plain: Plain, session: dict[str, Any]) -> None:
    expected = plain.played(session)
    assert "fault" not in expected
    assert json.loads(json.dumps(played(session))) == expected


def test_a_session_played_twice_is_the_same_and_another_one_is_not() -> None:
    """What is compared depends on what clients do, and on nothing else."""
    steps: list[list[Any]] = [
        ["connect", 0, 5, False], ["turn"],
        ["say", 0, (wire.subscribe(1, [("a", 2)]) + wire.publish("a", b"x", 2, 1)).hex()], ["turn"], ["work"], ["turn"],
    ]  # fmt: skip
    session = {"durability": "process", "at_once": True, "steps": steps}
    first = played(session)
    other = played({**session, "steps": [*steps, ["say", 0, wire.publish("a", b"y", 1, 2).hex()]]})
    assert played(session) == first
    assert first["heard"] != other["heard"] and first["files"] != other["files"]
