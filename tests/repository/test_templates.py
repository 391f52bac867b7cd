"""Forms for issues and pull requests: of the shape that the code host takes, and true in what they ask to run."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from rumq.cli.main import build_parser

ROOT = Path(__file__).parents[2]
FORMS = ("bug", "feature")
KINDS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


def form(name: str) -> dict[str, Any]:
    found = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_what_the_host_requires(name: str) -> None:
    found = form(name)
    assert found["name"] and found["description"]
    fields = [each for each in found["body"] if each["type"] != "markdown"]
    assert {each["type"] for each in found["body"]} <= KINDS
    assert all(each["attributes"]["label"] for each in fields)
    assert len({each["id"] for each in fields}) == len(fields) > 0
    assert fields[0]["validations"] == {"required": True}


def test_commands_that_a_form_asks_for_are_taken() -> None:
    text = (ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text()
    commands = re.findall(r"`rumqd ([^`]+)`", text)
    assert {"version", "ask events --limit 200 --json", "show settings --json --config FILE"} <= {*commands}
    for command in commands:
        if command not in ("pub", "sub"):  # named, not to be run as they are
            build_parser().parse_args(shlex.split(command))


@pytest.mark.parametrize(
    "path", [".github/pull_request_template.md", ".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/config.yml"]
)
def test_pages_that_are_named_exist(path: str) -> None:
    named = re.findall(r"[\w/]+\.md\b", (ROOT / path).read_text())
    assert named and all((ROOT / each).exists() for each in named)


def test_a_hole_is_led_to_the_policy() -> None:
    assert "../security/policy" in (ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text()
    assert (ROOT / "SECURITY.md").exists()
