"""kill -9 of one of several shards, again and again, and of all at once: the same promises hold.

The broker's other shards keep their clients, and clients of the one that died come back to it."""

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.conformance.peer import Ended
from tests.faults.kill.episode import Episode, report
from tests.faults.kill.traffic import Publisher, Running, Subscriber

LONG_EPISODES = int(os.environ.get("RUMQ_EPISODES", "40"))
PAUSE_SECONDS_MAX = 0.25


class ShardEpisode(Episode):
    """In each life some shards are killed before the whole broker is."""

    def __init__(self, data: Path, seed: int, *flags: str) -> None:
        super().__init__(data, seed, "--set", "shards.count=2", *flags)
        self.publishers = [Publisher(f"p{n}", f"t/{n}", self.ledger) for n in range(4)]
        self.subscribers = [
            Subscriber(f"s{n}", 1 + n % 2, self.ledger, [3, 0, 7, 0][n], len(self.publishers)) for n in range(4)
        ]

    def _live_and_die(self) -> None:
        seed = self.random.getrandbits(32)
        self.deaths.append(f"life {seed}")
        self.broker.start()
        running, dead = Running(), threading.Event()
        for publisher in self.publishers:
            running.start(again_and_again, dead, publisher.run, self.broker.address, lambda: not dead.is_set())
        for subscriber in self.subscribers:
            running.start(again_and_again, dead, subscriber.run, self.broker.address)
        self._kill_shards(random.Random(seed))
        dead.set()
        self.broker.kill()
        running.join()

    def _kill_shards(self, chance: random.Random) -> None:
        for _ in range(chance.randint(0, 3)):
            time.sleep(chance.uniform(0.0, PAUSE_SECONDS_MAX))
            pids = shards_of(self.broker.process.pid)
            if pids:
                os.kill(chance.choice(pids), signal.SIGKILL)
        time.sleep(chance.uniform(0.0, PAUSE_SECONDS_MAX))


def again_and_again(dead: threading.Event, run: object, *args: object) -> None:
    """A client that connects again when its connection ends, until the whole broker is dead."""
    while not dead.is_set():
        try:
            run(*args)  # type: ignore[operator]
        except (Ended, ConnectionError):
            continue
        else:
            dead.wait(0.01)


def shards_of(pid: int) -> list[int]:
    """The processes of a broker's shards that live now."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


@pytest.mark.parametrize("durability", ["disk", "process"])
def test_a_few_kills_of_shards(data: Path, durability: str) -> None:
    episode = ShardEpisode(data, 20_262, "--set", f"log.durability={durability}")
    faults = episode.run(kills=4)
    assert not faults, report(episode, faults)
    assert len(episode.ledger.acknowledged) > 50


@pytest.mark.long
@pytest.mark.parametrize("seed", range(LONG_EPISODES))
def test_many_kills_of_shards(data: Path, seed: int) -> None:
    episode = ShardEpisode(data, seed, "--set", f"log.durability={['disk', 'process'][seed % 2]}")
    faults = episode.run(kills=10)
    assert not faults, report(episode, faults)
