"""kill -9 of one of several shards, again and again, and of all at once: the same promises hold.

The broker's other shards keep their clients, and clients of the one that died come back to it."""

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from rumq.net.kernels import shared_memory
from tests.conformance.peer import Ended
from tests.faults.kill.episode import Episode, report
from tests.faults.kill.traffic import Publisher, Running, Subscriber

LONG_EPISODES = int(os.environ.get("RUMQ_EPISODES", "40"))
PAUSE_SECONDS_MAX = 0.25


class ShardEpisode(Episode):
    """In each life some shards are killed before the whole broker is."""

    def __init__(self, data: Path, seed: int, *flags: str, payload_bytes: int = 0) -> None:
        super().__init__(data, seed, "--set", "shards.count=2", *flags)
        self.publishers = [Publisher(f"p{n}", f"t/{n}", self.ledger, payload_bytes) for n in range(4)]
        self.ring_bytes = 0  # of a ring between the shards, that were used when somebody looked
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
            self.ring_bytes = max([self.ring_bytes, *map(ring_bytes_of, shards_of(self.broker.process.pid))])
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


def ring_bytes_of(pid: int) -> int:
    """Bytes in memory of the rings that a shard has with others. proc_pid_smaps(5)"""
    try:
        with open(f"/proc/{pid}/smaps") as file:
            mapped = file.read().partition("memfd:rumq-bus")[2]
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has just died
    return 1024 * int(mapped.partition("Rss:")[2].split()[0]) if mapped else 0


@pytest.mark.parametrize("durability", ["disk", "process"])
def test_a_few_kills_of_shards(data: Path, durability: str) -> None:
    episode = ShardEpisode(data, 20_262, "--set", f"log.durability={durability}")
    faults = episode.run(kills=4)
    assert not faults, report(episode, faults)
    assert len(episode.ledger.acknowledged) > 50


def test_a_few_kills_of_shards_whose_messages_go_through_their_ring(data: Path) -> None:
    episode = ShardEpisode(data, 20_263, payload_bytes=8 << 10)
    faults = episode.run(kills=4)
    assert not faults, report(episode, faults)
    assert len(episode.ledger.acknowledged) > 50
    if shared_memory.IS_ORDERED:
        assert episode.ring_bytes > 64 << 10


@pytest.mark.long
@pytest.mark.parametrize("seed", range(LONG_EPISODES))
def test_many_kills_of_shards(data: Path, seed: int) -> None:
    size = [0, 8 << 10][seed // 2 % 2]
    episode = ShardEpisode(data, seed, "--set", f"log.durability={['disk', 'process'][seed % 2]}", payload_bytes=size)
    faults = episode.run(kills=10)
    assert not faults, report(episode, faults)
