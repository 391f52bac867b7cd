"""Every command of the documents is run as it stands there, page by page, or is listed with the reason why not.

What is not run is parsed all the same: commands, flags, settings, scripts and paths exist. `terminal` runs a page."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rumq.settings.keys import SECTION_TYPES
from tests.docs.blocks import (
    OTHER,
    OUTPUT,
    PYTHON,
    ROOT,
    SHELL,
    TOML,
    Block,
    blocks_in,
    blocks_of,
    commands_in,
    pages,
)
from tests.docs.not_run import NOT_RUN, Elsewhere
from tests.docs.parsing import faults_in, variable_faults

SECONDS_MAX = 300
PAGES = {str(path.relative_to(ROOT)): blocks_of(path) for path in pages()}
WITH_SPARK = ("README.md", "docs/tutorial/tutorial.md")  # in the gate; other pages' commands for Spark are long
BLOCKS = [block for blocks in PAGES.values() for block in blocks]
UNSHARE = ("unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")


def reason_of(block: Block) -> str | Elsewhere | None:
    """Why a block is not run here; None if it is."""
    return next((why for page, start, why in NOT_RUN if page == block.page and start in ("", *starts(block))), None)


def starts(block: Block) -> Iterator[str]:
    """What an entry of NOT_RUN may name: the beginning of the block's first command."""
    first = block.text.split("\n", 1)[0]
    yield from (first[:length] for length in range(1, len(first) + 1))


def needs(block: Block) -> str:
    """The program of another project that a block needs, which takes its time: "java", "prometheus" or none."""
    if re.search(r"rumq\.spark|rumqd spark", block.text):
        return "java"
    return "prometheus" if re.search(r"^prometheus |localhost:9090", block.text, re.M) else ""


def steps_of(blocks: list[Block], program: str = "") -> list[tuple[str, str, str]]:
    """What `terminal` is given. program: with the blocks that need it"""
    steps, ran = [], False
    for block in blocks:
        if block.language in (SHELL, PYTHON):
            ran = reason_of(block) is None and needs(block) in ("", program)
            if ran and block.before:
                steps.append((SHELL, f"{block.name}, before", block.before))
            if ran:
                steps.append((block.language, block.name, block.text))
        elif block.language == OUTPUT and ran:
            steps.append((OUTPUT, block.name, block.text))
    return steps


def can_be_alone() -> bool:
    """Whether namespaces can be made: as root, with util-linux and iproute2."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


def run_page(steps: list[tuple[str, str, str]], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*UNSHARE, sys.executable, "-m", "tests.docs.terminal", str(folder)], cwd=ROOT, input=json.dumps(steps),
        capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("page", [page for page, blocks in PAGES.items() if steps_of(blocks)])
def test_the_commands_of_a_page_work_as_they_are_written(page: str, tmp_path: Path) -> None:
    if page in WITH_SPARK and shutil.which("java") is not None:
        pytest.skip("they are run with those for Spark")
    run_in(steps_of(PAGES[page]), tmp_path)


def pages_with(program: str) -> list[str]:
    return [page for page, blocks in PAGES.items() if len(steps_of(blocks, program)) > len(steps_of(blocks))]


@pytest.mark.spark
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[] if page in WITH_SPARK else pytest.mark.long) for page in pages_with("java")],
)
def test_the_commands_of_a_page_work_with_spark(page: str, tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    run_in(steps_of(PAGES[page], "java"), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("page", pages_with("prometheus"))
def test_the_commands_of_a_page_work_with_prometheus(page: str, tmp_path: Path) -> None:
    """An alert fires half a minute after its cause."""
    if shutil.which("prometheus") is None:
        pytest.skip("Debian's package prometheus is not installed")
    run_in(steps_of(PAGES[page], "prometheus"), tmp_path)


def run_in(steps: list[tuple[str, str, str]], folder: Path) -> None:
    if not can_be_alone():
        pytest.skip("namespaces need root and unshare")
    done = run_page(steps, folder)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == SHELL], ids=lambda block: block.name)
def test_what_a_command_names_exists(block: Block) -> None:
    commands = commands_in(block.text)
    assert [fault for command in commands for fault in (*faults_in(command), *variable_faults(command))] == []


def test_a_block_that_is_not_run_is_on_the_list_and_the_list_has_no_other() -> None:
    """Every entry is for a block that exists; one that names a test, for a test that reads the page."""
    used = {
        (page, start)
        for page, start, _ in NOT_RUN
        for block in PAGES.get(page, ())
        if block.language in (SHELL, PYTHON) and start in ("", *starts(block))
    }
    assert [entry for entry in NOT_RUN if entry[:2] not in used] == []
    for page, _, why in NOT_RUN:
        if isinstance(why, Elsewhere):
            assert Path(page).name in (ROOT / why.test).read_text(), why


def test_what_is_not_marked_as_commands_has_none() -> None:
    """A block without a language is output or a drawing: commands in it would be run by nobody."""
    hidden = [
        block.name for block in BLOCKS if block.language == OTHER and block.text.startswith(("rumqd ", "$ ", "curl "))
    ]
    assert hidden == []


FAULTY = """\
# A page

```sh
rumqd log ls --no-such-flag
rumqd run --set log.no_such_key=1
curl http://localhost:8080/api/v1/no_such
python examples/no_such.py
no-such-program
```
"""


def test_a_command_that_names_what_is_not_there_is_seen() -> None:
    (block,) = blocks_in(FAULTY, "x.md")
    assert all(list(faults_in(command)) for command in commands_in(block.text))


RUNS = [
    (SHELL, "a", "rumqd --data d\nrumqd sub -v 'a/#'\nrumqd pub a/b -m 1 -q 1"),
    (OUTPUT, "b", "a/b ..."),
]


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ([], ""),
        ([(SHELL, "c", "false")], "c:\nfalse"),
        ([(SHELL, "c", "echo yes"), (OUTPUT, "d", "no")], "d:\nexpected"),
        ([(SHELL, "c", "rumqd run --data d --set mqtt.no_such=1")], "c:"),
    ],
)
def test_a_page_whose_commands_fail_is_seen(added: list[tuple[str, str, str]], said: str, tmp_path: Path) -> None:
    if not can_be_alone():
        pytest.skip("namespaces need root and unshare")
    steps = added or RUNS
    done = run_page(steps, tmp_path)
    assert (done.returncode == 0) == (not added), done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def test_toml_is_settings_or_rules() -> None:
    """Keys of tables in ```toml blocks exist."""
    import tomllib

    from rumq.settings.keys import SECTIONS, STREAM, STREAM_KEYS

    known = {**{name: set(keys) for name, keys in SECTIONS.items()}, STREAM: set(STREAM_KEYS)}
    for block in BLOCKS:
        if block.language == TOML:
            for section, value in tomllib.loads(block.text).items():
                if section in SECTION_TYPES or section == STREAM:
                    for each in value if isinstance(value, list) else [value]:
                        assert set(each) <= known[section], block.name
