"""`rumqd` as a user meets it: a process, its output, its exit status."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import pytest

SECONDS_MAX = 60
# What a developer has set must not change what the tests see.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("RUMQ_")}


class Ended(NamedTuple):
    status: int
    out: str
    err: str


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rumq", *arguments]


def rumqd(*arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None, cwd: Path | None = None) -> Ended:
    """Run one command to its end."""
    done = subprocess.run(
        command(*arguments),
        input=stdin,
        capture_output=True,
        timeout=SECONDS_MAX,
        env=ENVIRONMENT | (env or {}),
        cwd=cwd,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


class Broker:
    """A running `rumqd run`, on a port of its choice; its events as they come."""

    def __init__(self, data: Path, *flags: str) -> None:
        self.data = data
        self.process = subprocess.Popen(
            command("run", "--host", "127.0.0.1", "--port", "0", "--data", str(data), *flags),
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        self._events: Queue[dict[str, Any]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.port = str(self.wait("broker.ready")["port"])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._events.put(json.loads(line))

    def wait(self, name: str) -> dict[str, Any]:
        """The next event of this name; those before it are dropped."""
        while (event := self._events.get(timeout=SECONDS_MAX))["event"] != name:
            pass
        return event

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(SECONDS_MAX)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    running = Broker(tmp_path_factory.mktemp("cli") / "data")
    yield running
    assert running.stop() == 0
