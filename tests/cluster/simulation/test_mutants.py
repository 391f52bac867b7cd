"""The simulation is tested itself: each rule that is dropped makes some run fail, within a bounded number of seeds."""

import gc

import pytest

from tests.cluster.simulation import schedule
from tests.cluster.simulation.ledger import Wrong
from tests.cluster.simulation.mutants import MUTANTS, Mutant, planted


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_dropped_rule_is_found(mutant: Mutant) -> None:
    """Where it was found last, and if runs have changed since, from the first seed on."""
    with planted(mutant):
        seeds = [*range(mutant.first, mutant.first + 4), *range(mutant.seeds_max)]
        assert seed_that_fails(seeds, packs=mutant.packs) is not None


def test_without_a_fault_the_same_runs_pass() -> None:
    for packs in (False, True):
        assert seed_that_fails([each.first for each in MUTANTS if each.packs is packs], packs=packs) is None


def seed_that_fails(seeds: list[int], *, packs: bool) -> int | None:
    gc.disable()
    try:
        for count, seed in enumerate(seeds):
            if count % 50 == 49:
                gc.collect()
            try:
                schedule.run(seed, packs=packs)
            except Wrong:
                return seed
        return None
    finally:
        gc.enable()
