"""What runs before a commit is what the gate runs: the same commands and tools, no versions of its own."""

import shlex
from pathlib import Path
from typing import Any

import yaml

from tests.__main__ import groups

ROOT = Path(__file__).parents[2]
GROUPS = ("style", "types")


def repositories() -> list[dict[str, Any]]:
    found = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert isinstance(found, list)
    return found


def hooks() -> list[dict[str, Any]]:
    return [hook for each in repositories() for hook in each["hooks"]]


def without_folder(command: list[str]) -> list[str]:
    """The gate has the tools of the Python that runs it."""
    return [Path(command[0]).name, *command[1:]]


def test_commands_are_those_of_the_gate() -> None:
    gate = [without_folder([*command]) for group in groups() if group.name in GROUPS for command in group.commands]
    assert [without_folder(shlex.split(hook["entry"])) for hook in hooks()] == gate
    assert {Path(shlex.split(hook["entry"])[0]).parent for hook in hooks()} == {Path(".venv/bin")}


def test_they_see_the_whole_tree_and_have_no_versions_of_their_own() -> None:
    assert [each["repo"] for each in repositories()] == ["local"]
    for hook in hooks():
        assert (hook["language"], hook["pass_filenames"]) == ("system", False)
        assert "additional_dependencies" not in hook
