"""A broker with queues, and doors to it that live in the test, or in a process of their own that can be killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import trio

from rumq.auth.rules import RuleSet
from rumq.auth.rules import parse as parse_rules
from rumq.gateway.broker.shard_client import ShardClient
from rumq.process.wiring.queue_ports import queue_ports
from rumq.queues import QueuePorts, Queues
from rumq.settings.table import Data, Settings
from rumq.settings.table.queues import QueueSection
from tests.broker_process import Rumqd

WAIT_SECONDS = 30.0
FLAGS = ("gateway.port=-1", "gateway.host=127.0.0.1", "queues.enabled=true")


class World:
    """told: events of the doors"""

    def __init__(self, path: Path, *settings: str, shards: int = 1, rules: str = "") -> None:
        self.data = path / "data"
        self.shards = shards
        self.rules: RuleSet | None = parse_rules(rules, "rules") if rules else None
        flags = [*FLAGS, f"shards.count={shards}", *settings]
        self.broker = Rumqd(self.data, *(word for flag in flags for word in ("--set", flag)))
        self.told: list[tuple[str, dict[str, Any]]] = []

    def start(self) -> None:
        """Return once clients are accepted, and the gateway has begun to watch the broker: then it ends with it."""
        self.broker.start()
        self.broker.heard(lambda event: event["event"] == "listener.bound" and event["protocol"] == "http")

    def kill(self) -> None:
        self.broker.kill()

    def ports(self, name: str = "door", **bounds: int) -> QueuePorts:
        settings = Settings(data=Data(dir=str(self.data)), queues=QueueSection(enabled=True, **bounds))
        asker = ShardClient(str(self.data), self.shards)
        return queue_ports(settings, name, lambda: self.rules, asker.ask, self._tell)

    def _tell(self, name: str, **fields: Any) -> None:
        self.told.append((name, fields))

    def run(self, body: Callable[..., Awaitable[None]], *names: str, **bounds: int) -> None:
        """The body gets a door of each name; all end with it. It takes a minute at most."""

        async def main() -> None:
            doors = [Queues(self.ports(name, **bounds)) for name in names or ("door",)]
            with trio.fail_after(60):
                async with trio.open_nursery() as nursery:
                    for each in doors:
                        await nursery.start(each.run)
                    await body(*doors)
                    nursery.cancel_scope.cancel()

        trio.run(main)


async def until(is_so: Callable[[], bool | Awaitable[bool]], seconds: float = WAIT_SECONDS) -> None:
    """Wait for what is stated."""
    with trio.move_on_after(seconds):
        while True:
            found = is_so()
            if found if isinstance(found, bool) else await found:
                return
            await trio.sleep(0.02)
    raise AssertionError("it never came to be")


class DoorProcess:
    """A door in a process of its own, that takes commands and says what came: `tests/queues/door.py`."""

    def __init__(self, world: World, name: str = "other") -> None:
        command = [sys.executable, "-m", "tests.queues.door", str(world.data), name, str(world.shards)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said: list[dict[str, Any]] = []
        self._heard = threading.Condition()
        threading.Thread(target=self._hear, daemon=True).start()
        self.heard(lambda each: each.get("is_ready"))

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._heard:
                self.said.append(json.loads(line))
                self._heard.notify_all()

    def heard(self, is_it: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        until = time.monotonic() + WAIT_SECONDS
        with self._heard:
            while not (found := [each for each in self.said if is_it(each)]):
                left = until - time.monotonic()
                assert left > 0 and self.process.poll() is None, self.said[-3:]
                self._heard.wait(left)
        return found[0]

    def ask(self, **command: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        if self.process.poll() is None:
            self.kill()


def texts(found: Mapping[Any, bytes]) -> list[str]:
    return sorted(payload.decode() for payload in found.values())
