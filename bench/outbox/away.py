"""A broker that is away while its client publishes and is killed: is each message forwarded once, in order, soon?"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import trio

from bench.connections import BenchFault
from bench.load.load import Load
from bench.outbox.publisher import TOPIC, parsed
from bench.peers.peer import HOST, Run, environment, free_port
from bench.peers.rumq import Rumq
from rumq.client import connect

LOAD = Load(publishers=1, subscribers=1, qos=2)
AFTER_S = 2.0  # it publishes on while the broker is back
FORWARD_S_MAX = 120.0


class Publisher:
    """The program that publishes. kept: the last number that it said"""

    def __init__(self, port: int, path: Path, first: int, end: int, rate: int) -> None:
        numbers = map(str, (first, end, rate))
        command = [sys.executable, "-m", "bench.outbox.publisher", str(port), str(path), *numbers]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
        self.kept = first - 1
        self.cpu_s: float | None = None

    def listen(self, until: int) -> None:
        """Until this number is kept, or the program ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, seconds = line.partition(" ")
            if word == "forwarded":
                self.cpu_s = float(seconds)
                return
            self.kept = int(word)
            if self.kept >= until:
                return

    def kill(self) -> int:
        """SIGKILL. The next number to publish."""
        self._process.kill()
        self.listen(sys.maxsize)
        self._process.wait()
        return self.kept + 1

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()


@contextmanager
def broker() -> Iterator[tuple[Run, int]]:
    """It runs not yet; on its port nobody listens."""
    with tempfile.TemporaryDirectory(prefix="bench-outbox-") as folder:
        port = free_port()
        run = Run("rumq", Rumq().command(LOAD, Path(folder), port), Path(folder), (HOST, port))
        try:
            yield run, port
        finally:
            run.end()


def measure(seconds: float, rate: int, kills: int) -> dict[str, float]:
    """seconds: that the broker is away; kills: of the client meanwhile, evenly spread. raises: BenchFault"""
    with broker() as (run, port), tempfile.TemporaryDirectory(prefix="bench-outbox-file-") as path:
        away, end = int(seconds * rate), int((seconds + AFTER_S) * rate)
        first = 0
        for kill in range(kills):
            publisher = Publisher(port, Path(path), first, end, rate)
            publisher.listen(away * (kill + 1) // (kills + 1))
            first = publisher.kill()
        publisher = Publisher(port, Path(path), first, end, rate)
        try:
            publisher.listen(away)
            kept = sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())
            waiting = publisher.kept + 1
            run.begin()
            begin = time.monotonic()
            trio.run(until_forwarded, publisher)
            forwarded = time.monotonic() - begin
        finally:
            publisher.end()
        found = trio.run(messages, port)
        check(found, end)
        return {
            "messages that waited": waiting,
            "its files, bytes a message": kept / waiting,
            "messages in all": end,
            "in the log twice": len(found) - len({number for _, number in found}),
            "seconds until all were forwarded": forwarded,
            "forwarded, msg/s": end / forwarded,
            "the last program's CPU, us a message": (publisher.cpu_s or 0.0) / end * 1e6,
        }


async def until_forwarded(publisher: Publisher) -> None:
    with trio.move_on_after(FORWARD_S_MAX):
        await trio.to_thread.run_sync(publisher.listen, sys.maxsize, abandon_on_cancel=True)
    if publisher.cpu_s is None:
        raise BenchFault(f"after {FORWARD_S_MAX:.0f} s messages of the client still wait")


async def messages(port: int) -> list[tuple[int, int]]:
    """(the first number of the program, number) of each, in the order of the log."""
    async with connect(HOST, port) as client:
        return [parsed(record.payload) async for record in client.replay(TOPIC)]


def check(found: list[tuple[int, int]], end: int) -> None:
    """raises: BenchFault: one is missing, was forwarded twice, or is out of order"""
    if missing := set(range(end)) - {number for _, number in found}:
        raise BenchFault(f"{len(missing)} of {end} are missing, {min(missing)} first")
    if len(set(found)) < len(found):
        raise BenchFault(f"{len(found) - len(set(found))} were forwarded twice")
    if found != sorted(found):
        raise BenchFault("the log has them in another order than they were published in")
