"""Workflows: they parse, name only what is in the tree, and run what README.md promises of Pythons and processors."""

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from rumq.version import VERSION
from tests.__main__ import groups

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github/workflows"
NAMES = sorted(path.name for path in FOLDER.iterdir())
PYTHONS = ["3.11", "3.12", "3.13"]
RUNNERS = {"ubuntu-24.04": "x86", "ubuntu-24.04-arm": "ARM"}
# A path of the tree as a command has it: of a folder that it has, or a script at its top.
TOPS = r"\.ci|\.github|bench|commitlog|docs|examples|ops|packaging|pyspark_rumq|router|rumq|tests"
PATH = re.compile(rf"(?<![\w./$}}-])(?:\./)?((?:{TOPS})/[\w./-]*\w|Dockerfile|\./(?:run|test)\b)")
GROUP = re.compile(r"-m tests\b((?: +(?![&|;>-])\S+)*)")


def workflow(name: str) -> dict[Any, Any]:
    found = yaml.safe_load((FOLDER / name).read_text())
    assert isinstance(found, dict)
    return found


def events(name: str) -> dict[str, Any]:
    """What starts it. YAML 1.1 reads the key `on` as true."""
    found = workflow(name)[True]
    assert isinstance(found, dict)
    return found


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(name)["jobs"].values() for step in job["steps"]]


def commands(name: str) -> str:
    return "\n".join(step["run"] for step in steps(name) if "run" in step)


def paths_in(text: str) -> list[str]:
    return [found.removeprefix("./") for found in PATH.findall(text)]


def groups_in(text: str) -> list[str]:
    return [word.strip("\"'") for words in GROUP.findall(text) for word in words.split()]


def extras_in(text: str) -> list[str]:
    return [extra for found in re.findall(r"'?\.\[([\w,]+)\]", text) for extra in found.split(",")]


@pytest.mark.parametrize("name", NAMES)
def test_a_workflow_has_an_event_jobs_and_steps(name: str) -> None:
    assert events(name)
    for job in workflow(name)["jobs"].values():
        assert job["runs-on"] and all(("run" in step) != ("uses" in step) for step in job["steps"])
        assert set(needs(job)) <= set(workflow(name)["jobs"])


def needs(job: dict[str, Any]) -> list[str]:
    found = job.get("needs", [])
    return [found] if isinstance(found, str) else found


@pytest.mark.parametrize("name", NAMES)
def test_it_names_only_what_is_in_the_tree(name: str) -> None:
    text = commands(name)
    assert [path for path in paths_in(text) if not (ROOT / path).exists()] == []
    assert set(groups_in(text)) <= {group.name for group in groups()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras_in(text)) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("name", NAMES)
def test_its_commands_are_a_shell_s(name: str) -> None:
    for step in steps(name):
        if "run" in step:
            subprocess.run(["bash", "-n"], input=step["run"], text=True, check=True)


@pytest.mark.parametrize("name", NAMES)
def test_it_may_write_only_where_it_says_so(name: str) -> None:
    assert workflow(name)["permissions"] == {"contents": "read"}


def test_what_is_not_in_the_tree_is_seen() -> None:
    text = "python ops/nowhere.py build/site && ./test tests/no && .ci/run\npython -m tests style nothing && x"
    assert paths_in(text) == ["ops/nowhere.py", "test", "tests/no", ".ci/run"]
    assert groups_in(text) == ["style", "nothing"]
    assert extras_in("pip install -e '.[docs,nothing]'") == ["docs", "nothing"]


def test_a_push_runs_the_gate_on_each_python_and_both_processors() -> None:
    assert events("tests.yml")["push"] == {"branches": ["main"]} and "pull_request" in events("tests.yml")
    gate = workflow("tests.yml")["jobs"]["gate"]
    assert gate["strategy"]["matrix"] == {"os": [*RUNNERS], "python": PYTHONS}
    assert gate["runs-on"] == "${{ matrix.os }}" and "${{ matrix.python }}" in gate["container"]["image"]
    assert gate["steps"][-1]["run"] == ".ci/run"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [each.rpartition(":: ")[2] for each in project["classifiers"] if "Python :: 3." in each]
    assert listed == PYTHONS


@pytest.mark.parametrize(("name", "job"), [("wheels.yml", "wheels"), ("wheels.yml", "debian"), ("images.yml", "build")])
def test_a_tag_makes_packages_on_both_processors(name: str, job: str) -> None:
    assert events(name)["push"] == {"tags": ["v*"]}
    matrix = workflow(name)["jobs"][job]["strategy"]["matrix"]
    runners = matrix.get("os") or [each["os"] for each in matrix["include"]]
    assert {RUNNERS[each] for each in runners} == {"x86", "ARM"}


def test_an_image_is_pushed_only_if_the_tag_is_what_it_says_of_itself() -> None:
    text = commands("images.yml")
    assert text.index('"rumqd ${VERSION#v}, ') < text.index("docker push")


@pytest.mark.parametrize(
    ("kind", "name", "passes"),
    [
        ("tag", f"v{VERSION}", True),
        ("tag", f"v{VERSION}0", False),
        ("tag", VERSION[:-1], False),
        ("branch", "main", True),
    ],
)
def test_packages_are_made_only_if_the_tag_is_the_version(kind: str, name: str, passes: bool) -> None:
    jobs = workflow("wheels.yml")["jobs"]
    assert all("version" in needs(job) for other, job in jobs.items() if other != "version")
    environment = {**os.environ, "GITHUB_REF_TYPE": kind, "GITHUB_REF_NAME": name}
    command = jobs["version"]["steps"][-1]["run"]
    done = subprocess.run(["bash", "-e", "-c", command], cwd=ROOT, env=environment, check=False)
    assert (done.returncode == 0) is passes


def test_the_debian_package_takes_files_that_exist() -> None:
    script = (ROOT / "packaging/debian/build").read_text()
    named = [name for found in re.findall(r'"\$root"?/([\w./{},*-]+)', script) for name in expanded(found)]
    assert "docs/guides/security.md" in named and [name for name in named if not [*ROOT.glob(name)]] == []


def expanded(text: str) -> list[str]:
    """`a/{b,c}.md` as the shell has it"""
    before, brace, rest = text.partition("{")
    inside, _, after = rest.partition("}")
    return [f"{before}{one}{after}" for one in inside.split(",")] if brace else [text]
