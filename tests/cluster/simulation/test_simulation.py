"""Whatever fails, and whenever: what a replicated shard has acknowledged stays, and it soon goes on."""

import gc
import time
from collections import Counter

import pytest

from tests.cluster.simulation.schedule import run

FIRST, RUNS = 0, 400
LONG = 1_000_000
PACKED = ("packed by a leader", "packed by a follower", "sent again")
LONG_SECONDS = 6 * 3600
HAPPENS = (
    "kills", "power cuts", "crashes inside", "isolate", "one_way", "halves", "cut_link", "pause", "slow_disk",
    "fail_disk", "etcd_cut", "etcd_silent", "etcd_stale", "deposed", "trims", "hand-overs", "changes of members",
    "members changed", "aimed at lead", "aimed at Promised", "aimed at Complete", "aimed at Opened", "aimed at commit",
)  # fmt: skip


def played(first: int, count: int, seconds: float = float("inf"), *, packs: bool = False) -> tuple[Counter[str], int]:
    counts: Counter[str] = Counter()
    begun = time.monotonic()
    done = 0
    gc.disable()  # a run is one large cycle, which is collected once it is over
    try:
        for seed in range(first, first + count):
            counts += run(seed, packs=packs)
            done += 1
            if seed % 100 == 99:
                gc.collect()
                if time.monotonic() - begun > seconds:
                    break
    finally:
        gc.enable()
    return counts, done


def test_runs_of_fixed_seeds_lose_and_change_nothing() -> None:
    counts, _ = played(FIRST, RUNS)
    missing = [name for name in HAPPENS if not counts[name]]
    assert not missing, "all of that happens"


def test_runs_in_which_each_copy_packs_its_segments_lose_and_change_nothing() -> None:
    """Also one that is led by a copy with other files than its own, and one that was away meanwhile."""
    counts, _ = played(FIRST, RUNS, packs=True)
    missing = [name for name in PACKED if not counts[name]]
    assert not missing, "all of that happens"


@pytest.mark.parametrize("seed", [413097, 416360, 612175, 765071, 784117])
def test_runs_that_have_found_a_fault_do_not_find_it_again(seed: int) -> None:
    run(seed)


def test_a_run_is_the_same_each_time() -> None:
    traces: list[list[str]] = [[], []]
    for trace in traces:
        run(3, trace.append)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 100


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS + 3600)
def test_a_million_runs_lose_and_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as the time allows; `python -m tests.cluster.simulation` runs several at a time."""
    begun = time.monotonic()
    counts, done = played(RUNS, LONG, LONG_SECONDS / 2)
    packed, more = played(RUNS, LONG, LONG_SECONDS / 2, packs=True)
    counts, done = counts + packed, done + more
    with capsys.disabled():
        print(f"\n{done} runs, {done / (time.monotonic() - begun):.0f}/s; {dict(sorted(counts.items()))}")
