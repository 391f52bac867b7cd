"""python -m tests.simulation: schedules of several shards, one after the other, each from its seed."""

import argparse
import gc
import sys
import time
from collections import Counter
from functools import partial
from multiprocessing import get_context

from tests.simulation.schedule import Kind, Wrong, run

BATCH = 50


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this one, and say what happens")
    parser.add_argument("--schedules", type=int, default=1000, help="how many [1000]")
    parser.add_argument("--first", type=int, default=0, help="the first seed [0]")
    parser.add_argument("--jobs", type=int, default=1, help="processes [1]")
    parser.add_argument("--late", action="store_true", help="shards begin while others are missing")
    parser.add_argument("--packs", action="store_true", help="segments are small, and are packed")
    parser.add_argument("--go-on", action="store_true", help="after one that fails")
    args = parser.parse_args()
    kind = Kind(args.late, args.packs)
    if args.seed is not None:
        return replay(args.seed, kind)
    begun = time.monotonic()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    done = 0
    starts = range(args.first, args.first + args.schedules, BATCH)
    batches = [range(at, min(at + BATCH, args.first + args.schedules)) for at in starts]
    with get_context("fork").Pool(args.jobs) as pool:
        for some, failed, size in pool.imap_unordered(partial(play, kind=kind), batches):
            counts += some
            done += size
            wrong += failed
            for each in failed:
                print(each, flush=True)
            if failed and not args.go_on:
                break
    seconds = time.monotonic() - begun
    print(
        f"seeds {args.first} to {args.first + args.schedules - 1}: {done} schedules in {seconds:.0f} s, "
        f"{done / seconds:.0f}/s with {args.jobs} processes; {len(wrong)} wrong"
    )
    for name, count in sorted(counts.items()):
        print(f"  {name:24} {count:>9}  {count / max(1, done):8.2f} a schedule")
    return 1 if wrong else 0


def play(seeds: range, kind: Kind) -> tuple[Counter[str], list[str], int]:
    counts: Counter[str] = Counter()
    wrong = []
    gc.disable()  # a schedule is one large cycle, which is collected once it is over
    for seed in seeds:
        try:
            counts += run(seed, kind=kind)
        except Wrong as fault:
            wrong.append(str(fault))
    gc.collect()
    return counts, wrong, len(seeds)


def replay(seed: int, kind: Kind) -> int:
    try:
        run(seed, print, kind)
    except Wrong as fault:
        print(fault)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
