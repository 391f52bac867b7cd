"""rumq/version.py is the one place that has the version: others read it there, or are compared with it here."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rumq.gateway.contract.openapi import description
from rumq.version import VERSION

ROOT = Path(__file__).parents[2]
CHART = "packaging/helm/rumq/Chart.yaml"
SHOWN = ("docs/guides/cluster.md", "docs/reference/sys.md")  # what a broker of this version answers
# A build environment has setuptools and Cython: an import of rumq, or of what it needs, would fail there.
READ = """\
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        assert name.partition(".")[0] not in ("rumq", "router", "commitlog", "msgspec", "trio"), name

sys.meta_path.insert(0, Nothing())
from setuptools.dist import Distribution
project = Distribution()
project.parse_config_files()
print(project.get_version())
"""


def test_the_package_has_it_without_an_import_of_rumq() -> None:
    done = subprocess.run([sys.executable, "-c", READ], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, VERSION), done.stderr


def test_it_is_major_minor_and_patch() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


def test_the_chart_and_its_application_have_it() -> None:
    chart = yaml.safe_load((ROOT / CHART).read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


@pytest.mark.parametrize("page", SHOWN)
def test_an_answer_that_a_page_shows_is_of_it(page: str) -> None:
    shown = re.findall(r"rumq version (\d[\d.]*)|127\.0\.1\.\d:1883 +(\d+\.\d+\.\d+)", (ROOT / page).read_text())
    assert {one or other for one, other in shown} == {VERSION}


def test_the_newest_release_of_the_changes_is_it() -> None:
    titles = re.findall(r"^## \[?([^\]\s]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert titles[:2] == ["Unreleased", VERSION]


def test_changes_are_of_the_kinds_that_keep_a_changelog_has() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for release in text.split("\n## ")[1:]:
        found = re.findall(r"^### (.+)$", release, re.MULTILINE)
        assert found and set(found) <= kinds and len(set(found)) == len(found)


def test_the_description_of_rest_has_the_one_that_it_is_given() -> None:
    assert description(VERSION)["info"]["version"] == VERSION


def test_nobody_else_has_it() -> None:
    """In what is built from. Tests and figures name versions of their own."""
    found = subprocess.run(
        ["git", "grep", "-lwF", VERSION, "--", "*.py", "*.toml", "*.cfg", "*.yml", "*.yaml", "Dockerfile", "packaging"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode > 1:
        pytest.skip("this is no clone")
    others = {name for name in found.stdout.split() if not name.startswith(("tests/", "bench/"))}
    assert others == {"rumq/version.py", CHART}
