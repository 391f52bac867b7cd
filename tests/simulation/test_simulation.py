"""In whatever order shards, links, disks and clients go on, and whichever shard dies: every promise is kept."""

import gc
import time
from collections import Counter

import pytest

from tests.simulation.schedule import PLAIN, Kind, run

FIRST, SCHEDULES, PACKED = 0, 300, 100
FOUND = (
    44_822,
    220_984,
    223_607,
    223_981,
    304_450,
    55_195,
    301_097,
    300_521,
    101_421,
    100_192,
    18_668,
    23_563,
    36_667,
    500_761,
    11_062,
    30_180,
)  # what they showed once has no other test, or needs three shards
LONG = 20_000
HAPPENS = (
    "kills", "kills inside", "power losses", "cuts", "takeovers", "delays", "disconnects", "client.taken_over",
    "shard.lost", "unsubscriptions",
)  # fmt: skip


def played(first: int, count: int, kind: Kind = PLAIN) -> Counter[str]:
    counts: Counter[str] = Counter()
    gc.disable()  # a schedule is one large cycle, which is collected once it is over
    try:
        for seed in range(first, first + count):
            counts += run(seed, kind=kind)
            if seed % 100 == 99:
                gc.collect()
    finally:
        gc.enable()
    return counts


def test_schedules_of_fixed_seeds_keep_every_promise() -> None:
    counts = played(FIRST, SCHEDULES)
    missing = [name for name in HAPPENS if not counts[name]]
    assert not missing, "all of that happens"


def test_schedules_in_which_segments_are_packed_keep_every_promise() -> None:
    counts = played(FIRST, PACKED, Kind(packs=True))
    missing = [name for name in ("log.packed", "kills", "kills inside", "power losses") if not counts[name]]
    assert not missing and not counts["log.failed"]


@pytest.mark.parametrize("seed", FOUND)
def test_what_a_schedule_has_found_once_stays_repaired(seed: int) -> None:
    run(seed)


def test_a_schedule_is_the_same_each_time() -> None:
    traces: list[list[str]] = [[], []]
    for trace in traces:
        run(3, trace.append)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 100


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_many_schedules_keep_every_promise(capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    counts = played(SCHEDULES, LONG)
    with capsys.disabled():
        print(
            f"\nseeds {SCHEDULES} to {SCHEDULES + LONG - 1}: {LONG / (time.monotonic() - begun):.0f} schedules/s; "
            f"{dict(sorted(counts.items()))}"
        )
