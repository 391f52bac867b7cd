"""The commands over TLS of README.md and docs/security.md, run as they stand there, but for the ports.

A block is one shell session: what stands before `rumqd run` is done first, what stands behind it while that runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.peers.peer import free_port
from tests.broker_process import ENVIRONMENT, Rumqd

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 60
PASSWORD = "secret"  # which docs/security.md has in a URL
PORTS = ("1883", "8883", "8884")  # that the documents name


def block(path: str, words: str) -> str:
    """The one shell block of a document that has `words` in it."""
    (found,) = [
        each for each in re.findall(r"```sh\n(.*?)```", (ROOT / path).read_text(), re.S) if words in each
    ]
    return str(found)


def with_free_ports(text: str) -> str:
    for port in PORTS:
        text = re.sub(rf"\b{port}\b", str(free_port()), text)
    return text


def parts(text: str) -> tuple[str, str, list[str]]:
    """(what comes first, the first `rumqd run`, each command behind it)"""
    text = text.replace("pip install '.[certs]' && ", "").replace("\\\n", "")
    before, run, after = re.split(r"^(rumqd run .*)$", text, maxsplit=1, flags=re.M)
    commands = [line for line in after.splitlines() if line.strip() and not line.startswith("rumqd run")]
    return before, run, commands


def shell(commands: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-e", "-c", commands], cwd=folder, env=ENVIRONMENT, input=f"{PASSWORD}\n",
        capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
    )  # fmt: skip


class Started(Rumqd):
    """The broker of a block, by its own command line."""

    def __init__(self, folder: Path, line: str) -> None:
        super().__init__(folder)
        self._line = line

    def command(self) -> list[str]:
        return ["bash", "-c", f"cd {self.data} && exec {self._line}"]


@pytest.mark.parametrize(("path", "count"), [("README.md", 2), ("docs/security.md", 3)])
def test_the_commands_work_as_they_are_written(
    path: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    before, run, commands = parts(with_free_ports(block(path, "rumqd certs dev")))
    done = shell(before, tmp_path)
    assert done.returncode == 0, done
    assert len(commands) == count
    broker = Started(tmp_path, run)
    broker.start()
    try:
        for line in commands:
            if line.startswith("mosquitto_") and shutil.which("mosquitto_pub") is None:
                continue  # of Debian's mosquitto-clients
            done = shell(line, tmp_path)
            assert done.returncode == 0, (line, done)
            assert done.stdout == ("plant/7/temp 21.5\n" if line.startswith("rumqd sub") else "")
        assert broker.stop() == 0
    finally:
        broker.end()
