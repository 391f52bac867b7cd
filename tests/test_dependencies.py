"""What rumq needs of others: all of it is declared, with a floor above what is known to be unsafe."""

import ast
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.audit import NONE_KNOWN, SKIPPED, SOME_KNOWN, judged

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDED = {one.name: one for one in map(Requirement, PROJECT["dependencies"])}
OPTIONAL = [Requirement(one) for some in PROJECT["optional-dependencies"].values() for one in some]
EXTRAS = {one.name for one in OPTIONAL}
ALL = [*NEEDED.values(), *OPTIONAL]
# The last version with a known hole that reaches rumq, or what it uses of the package.
UNSAFE = {"pyjwt": "2.11", "h11": "0.15", "cryptography": "46.0.4", "starlette": "1.3.0"}
OURS = {"commitlog", "router", "rumq", "pyspark_rumq"}
DISTRIBUTIONS = {
    "jwt": "pyjwt",
    "argon2": "argon2-cffi",
    "Cython": "cython",
    "py4j": "pyspark",
    "prometheus_client": "prometheus-client",
    "opentelemetry": "opentelemetry-sdk",
    "grpc": "grpcio",
    "grpc_health": "grpcio-health-checking",
    "grpc_reflection": "grpcio-reflection",
    "google": "protobuf",  # and googleapis-common-protos
}


@pytest.mark.parametrize("name", UNSAFE)
def test_versions_with_known_holes_are_not_installed(name: str) -> None:
    asked = [one for one in ALL if one.name == name]
    assert asked and not any(one.specifier.contains(UNSAFE[name]) for one in asked)


@pytest.mark.parametrize("name", NEEDED)
def test_what_is_tested_with_is_what_is_asked_for(name: str) -> None:
    assert NEEDED[name].specifier.contains(Version(version(name)))


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_whatever_is_imported_is_declared() -> None:
    names = {name for folder in OURS for path in (ROOT / folder).rglob("*.py") for name in imported(path)}
    others = {DISTRIBUTIONS.get(name, name) for name in names - OURS - set(sys.stdlib_module_names)}
    assert others <= NEEDED.keys() | EXTRAS


ASKED = {"name": "pyjwt", "version": "2.8.0", "vulns": []}
UNASKED = {"name": "pyjwt", "skip_reason": "Dependency not found on PyPI"}
VULNERABLE = {"name": "h11", "version": "0.14", "vulns": [{"id": "CVE-1", "fix_versions": ["0.16"]}]}


@pytest.mark.parametrize(
    ("packages", "status", "words"),
    [
        ([ASKED], NONE_KNOWN, "1 packages, no vulnerability"),
        ([ASKED, VULNERABLE], SOME_KNOWN, "h11 0.14: CVE-1, fixed in 0.16"),
        ([UNASKED, VULNERABLE], SOME_KNOWN, "h11"),
        ([UNASKED], SKIPPED, "pyjwt could not be asked about: Dependency not found"),
        ([ASKED, {**UNASKED, "name": "somebody-elses"}], NONE_KNOWN, "2 packages"),
        ([], SKIPPED, "everything could not be asked about"),
    ],
)
def test_an_audit_that_asked_nobody_is_not_taken_for_a_clean_one(packages: list[Any], status: int, words: str) -> None:
    found = judged({"dependencies": packages}, {"pyjwt", "h11"})
    assert found.status == status
    assert words in found.lines[0]
