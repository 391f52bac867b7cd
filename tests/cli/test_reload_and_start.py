"""SIGHUP, and shards that start during it or after it: what was written last is in force in every shard."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.conformance.peer import Peer
from tests.faults.kill.test_shards import shards_of

CLIENTS = [f"c{n}" for n in range(8)]  # some live in each shard
ALLOWED, NOT_AUTHORIZED = {0, 0x10}, {0x87}
# A pending signal and the mask outlive exec.
HUNG_UP = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
os.kill(os.getpid(), signal.SIGHUP)
os.execv(sys.argv[1], sys.argv[1:])
"""


class HungUp(Rumqd):
    """It has got its SIGHUP before it can read anything."""

    def command(self) -> list[str]:
        return [sys.executable, "-c", HUNG_UP, *super().command()]


def rules(topic: str) -> str:
    return f'[[rule]]\nallow = ["publish"]\ntopics = ["{topic}"]\n'


def answers(broker: Rumqd, topic: str) -> set[int | None]:
    """What clients of each shard are answered."""
    found = set()
    for client_id in CLIENTS:
        with Peer(broker.address) as peer:
            peer.connect(client_id)
            found.add(peer.publish(topic, b"x", 1))
    return found


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Rumqd]:
    """Two shards, and rules for `first`."""
    (tmp_path / "first.toml").write_text(rules("first"))
    (tmp_path / "config.toml").write_text(f'[auth]\nrules_file = "{tmp_path}/first.toml"\n')
    broker = Rumqd(tmp_path / "data", "--config", f"{tmp_path}/config.toml", "--shards", "2")
    broker.start()
    yield broker
    broker.end()


@pytest.mark.parametrize("shards", [1, 2])
def test_a_sighup_during_the_start_is_not_lost(tmp_path: Path, shards: int) -> None:
    broker = HungUp(tmp_path / "data", "--shards", str(shards))
    broker.start()
    try:
        broker.event("settings.reloaded", number=shards)
        broker.hang_up()
        broker.event("settings.reloaded", number=2 * shards)
        assert broker.stop() == 0
        assert len(broker.named("settings.reloaded")) == 2 * shards
    finally:
        broker.end()


def test_a_shard_that_is_started_again_has_the_settings_in_force(two: Rumqd, tmp_path: Path) -> None:
    """Those of the start would read a file that is gone."""
    assert answers(two, "first") <= ALLOWED
    (tmp_path / "second.toml").write_text(rules("second"))
    (tmp_path / "config.toml").write_text(f'[auth]\nrules_file = "{tmp_path}/second.toml"\n')
    two.hang_up()
    two.event("settings.reloaded", number=2)
    (tmp_path / "first.toml").unlink()
    (tmp_path / "config.toml").write_text("nonsense = 1\n")  # refused, thus not in force
    two.hang_up()
    two.event("settings.refused", number=2)
    for number, shard in enumerate(shards_of(two.process.pid), 1):
        os.kill(shard, signal.SIGKILL)
        two.event("shard.ready", number=number)
    assert answers(two, "first") == NOT_AUTHORIZED
    assert answers(two, "second") <= ALLOWED
