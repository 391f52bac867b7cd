"""The power goes at any call, and any part of what was not synced survives: nothing that was acknowledged in a stream
of durability `disk` is lost, nothing is called damaged, and no data file is modified. The fault model is that of
commitlog/testing/simulated_files.py.

Short histories are enumerated: every sequence of steps, every call of its last step, every subset of the sectors and
names that are at stake there (a sample where these are more than the bound). Long ones are random, from a seed."""

import time
from itertools import count
from random import Random

import pytest

from commitlog.testing.simulated_device import one_loss
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import append, everything, mark, opened, some_records, write
from tests.faults.power import STEPS, Life, histories, judge, judge_twice

STATES = 1_000_000
SEED = 20_240_229


class Losses:
    """What happens before each call: how many states of the disk are judged there, and a count of them."""

    def __init__(self, seed: int, *, at_stake_max: int, sample: int) -> None:
        """at_stake_max: up to so many sectors and names every subset is tried, else a sample"""
        self.chance = Random(seed)
        self.at_stake_max, self.sample = at_stake_max, sample
        self.states = 0
        self.waits = False

    def __call__(self, life: Life) -> None:
        if self.waits:
            return
        at_stake = life.files.at_stake()
        if at_stake <= self.at_stake_max:
            for number in range(1 << at_stake):
                judge(life, one_loss(number))
            self.states += 1 << at_stake
        else:
            for _ in range(self.sample):
                judge(life, self.chance.randrange)
            judge_twice(life, self.chance.randrange)
            self.states += self.sample + 1


def enumerate_histories(losses: Losses, length: int, *, before: tuple[str, ...] = ("group",)) -> None:
    """Every history of so many steps; what leads to the last step was judged as a shorter one."""
    for history in histories(length):
        losses.waits = True
        life = Life(SimulatedFiles(), losses, losses.chance)
        for step in (*before, *history[:-1]):
            life.step(step)
        losses.waits = False
        life.step(history[-1])


def live_at_random(losses: Losses, seed: int, steps: int) -> Life:
    """One long life; of the calls, some are looked at."""
    chance = Random(seed)
    files = SimulatedFiles(sector_bytes=chance.choice((512, 4096)))

    def sometimes(life: Life) -> None:
        if not chance.randrange(3):
            losses(life)

    life = Life(files, sometimes, chance)
    for _ in range(steps):
        life.step(chance.choice(STEPS))
    return life


def test_the_first_start_can_lose_the_power_at_any_call() -> None:
    losses = Losses(SEED, at_stake_max=9, sample=100)
    Life(SimulatedFiles(), losses, losses.chance)
    assert losses.states > 100


@pytest.mark.parametrize("step", STEPS)
def test_after_each_step_any_part_of_what_was_not_synced_survives(step: str) -> None:
    losses = Losses(SEED, at_stake_max=8, sample=40)
    losses.waits = True
    life = Life(SimulatedFiles(), losses, losses.chance)
    for before in ("group", "large", "group"):
        life.step(before)
    losses.waits = False
    life.step(step)
    life.step("group")


def test_lives_at_random() -> None:
    losses = Losses(SEED, at_stake_max=4, sample=5)
    trimmed = 0
    for seed in range(20):
        trimmed += live_at_random(losses, SEED + seed, steps=14).first > 0
    assert losses.states > 2000 and trimmed, "retention is among what happened"


@pytest.mark.parametrize("sector_bytes", [512, 4096])
def test_of_class_process_what_is_lost_is_told_and_nothing_else_is_read(sector_bytes: int) -> None:
    """It promises nothing for a power loss; but what a mark names is a gap, and no record is another one."""
    chance = Random(SEED)
    gone = told = renamed = 0
    size = sector_bytes // 50  # groups of about two sectors
    for _ in range(150):
        files = SimulatedFiles(sector_bytes=sector_bytes)
        partition = opened(files, durability="process", segment_bytes_max=15 * sector_bytes).partitions[0]
        for group in range(chance.randrange(1, 8)):
            append(partition, some_records(size, size * group))
            write(partition)
            if chance.randrange(2):
                mark(partition)
        committed = partition.committed_lsn
        store = opened(files.after_power_loss(chance.randrange), durability="process", seed=9)
        found, gaps = everything(store.partitions[0])
        end = store.partitions[0].next_lsn
        lost = {lsn for gap in gaps for lsn in range(gap.base_lsn, gap.next_lsn)}
        records = [(lsn, *some_records(1, lsn)[0]) for lsn in range(end) if lsn not in lost]
        assert [(seen.lsn, seen.topic, seen.payload) for seen in found] == records
        if {0, 1, 2} & lost:
            renamed += bool(found)
        assert {lsn for gap in store.recovered[0].gaps for lsn in range(gap.base_lsn, gap.next_lsn)} == lost
        gone += end < committed
        told += bool(lost)
    assert gone and told and renamed, "all of that happens"


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_million_states_after_a_power_loss(capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    losses = Losses(SEED, at_stake_max=9, sample=60)
    for length in (1, 2, 3):
        enumerate_histories(losses, length)
    enumerated = losses.states
    losses.at_stake_max, losses.sample = 6, 20
    for seed in count(SEED):
        if losses.states >= STATES:
            break
        live_at_random(losses, seed, steps=40)
    seconds = time.monotonic() - begun
    with capsys.disabled():
        print(
            f"\n{losses.states} states after a power loss, {enumerated} of them enumerated; seed {SEED}, up to {seed}; "
            f"0 acknowledged records lost; {losses.states / seconds:.0f} states/s"
        )
