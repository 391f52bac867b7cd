"""kill -9 at random times and at every kind of file system call: what was acknowledged is there, once where promised.

The invariants are those of docs/explanation/durability.md. The long form: `pytest tests/faults -m long`."""

import os
from pathlib import Path

import pytest

from tests.faults.kill.episode import Episode, report

LONG_EPISODES = int(os.environ.get("RUMQ_EPISODES", "80"))


@pytest.mark.parametrize("durability", ["disk", "process"])
def test_a_few_kills(data: Path, durability: str) -> None:
    episode = Episode(data, 20_261, "--set", f"log.durability={durability}")
    faults = episode.run(kills=6)
    assert not faults, report(episode, faults)
    assert len(episode.ledger.acknowledged) > 50


@pytest.mark.long
@pytest.mark.parametrize("seed", range(LONG_EPISODES))
def test_many_kills(data: Path, seed: int) -> None:
    """25 kills an episode: 2,000 with the default number of episodes."""
    episode = Episode(data, seed, "--set", f"log.durability={['disk', 'process'][seed % 2]}")
    faults = episode.run(kills=25)
    assert not faults, report(episode, faults)
