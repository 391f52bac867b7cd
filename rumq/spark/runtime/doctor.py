"""Check this machine for Spark: Java, packages, the workers' Python. Starts no session."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from rumq.table.errors import NoJava
from rumq.version import VERSION

JAVA_MIN = 17
PACKAGES = {"pyspark": (4, 2), "pyarrow": (18,), "numpy": (1, 26), "pandas": (2, 2)}
SECONDS_MAX = 60
ASKED = (
    "import sys, rumq.version as v, rumq.spark.source.data_source; "
    "print(v.VERSION, '.'.join(map(str, sys.version_info[:3])))"
)


class Diagnosis(NamedTuple):
    """what: the finding; do: the remedy, empty if nothing is wrong."""

    what: str
    do: str = ""


def examine(environment: Mapping[str, str]) -> Iterator[Diagnosis]:
    """environment: of the process that will start Spark"""
    yield java(environment)
    yield from packages()
    yield workers(environment)


def java(environment: Mapping[str, str]) -> Diagnosis:
    home = environment.get("JAVA_HOME")
    path = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH"))
    way = f"install Java {JAVA_MIN} (Debian: openjdk-17-jre-headless), or point JAVA_HOME to it"
    if path is None or shutil.which(path) is None:
        return Diagnosis(f"no Java: {path + ' is no program' if path else 'java is not on the PATH'}", way)
    said = output([path, "-version"])
    found = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', said)
    if found is None:
        return Diagnosis(f"{path} does not say its version: {last_line(said)}", way)
    what = f"Java {found[1]} ({path})"
    return Diagnosis(what, way if int(found[2]) < JAVA_MIN else "")


def check_java(environment: Mapping[str, str] | None = None) -> None:
    """Checked first, because Spark's own error only reports that its gateway exited. raises: NoJava"""
    found = java(os.environ if environment is None else environment)
    if found.do:
        raise NoJava(found.what, found.do)


def packages() -> Iterator[Diagnosis]:
    for name, least in PACKAGES.items():
        wanted = ".".join(map(str, least))
        try:
            there = version(name)
        except PackageNotFoundError:
            yield Diagnosis(f"no {name}", "pip install 'rumq[spark]'")
            continue
        numbers = tuple(int(n) for n in re.findall(r"\d+", there)[:2])
        too_old = f"pip install '{name}>={wanted}'" if numbers < least else ""
        yield Diagnosis(f"{name} {there}", too_old)


def workers(environment: Mapping[str, str]) -> Diagnosis:
    """Compare the Python that Spark will start on this machine with this one."""
    driver = f"{VERSION} {'.'.join(map(str, sys.version_info[:3]))}"
    said_by = "PYSPARK_PYTHON" if "PYSPARK_PYTHON" in environment else "the PATH"
    python = environment.get("PYSPARK_PYTHON", "python3")
    way = f"set PYSPARK_PYTHON={sys.executable}, or use rumq.spark.session(), which does"
    path = shutil.which(python, path=environment.get("PATH"))
    if path is None:
        return Diagnosis(f"workers run {python}, as {said_by} says, which is no program", way)
    said = last_line(output([path, "-c", ASKED]))
    if said == driver:
        return Diagnosis(f"workers run {path}: rumq and Python {said}")
    return Diagnosis(f"workers run {path}, as {said_by} says: {said}; the driver has {driver}", way)


def output(command: list[str]) -> str:
    """Output of a program; the error if it cannot be run or does not end."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return str(fault)
    return done.stdout.decode(errors="replace")


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["nothing"])[-1]
