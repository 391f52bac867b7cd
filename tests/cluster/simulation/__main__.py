"""python -m tests.cluster.simulation: runs of a replicated shard, one after the other, each from its seed."""

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from multiprocessing import get_context

from tests.cluster.simulation.ledger import Wrong
from tests.cluster.simulation.schedule import run

BATCH = 100


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this one, and say what happens")
    parser.add_argument("--seeds", type=int, default=1000, help="how many [1000]")
    parser.add_argument("--first", type=int, default=0, help="the first seed [0]")
    parser.add_argument("--jobs", type=int, default=1, help="processes [1]")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long [none]")
    parser.add_argument("--go-on", action="store_true", help="after one that fails")
    parser.add_argument("--packs", action="store_true", help="copies pack their segments")
    args = parser.parse_args()
    if args.seed is not None:
        return replay(args.seed, packs=args.packs)
    begun = time.monotonic()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    done = 0
    starts = range(args.first, args.first + args.seeds, BATCH)
    batches = [range(at, min(at + BATCH, args.first + args.seeds)) for at in starts]
    with get_context("fork").Pool(args.jobs) as pool:
        for some, failed, size in pool.imap(partial(play, packs=args.packs), batches):
            counts += some
            done += size
            wrong += failed
            for each in failed:
                print(each, flush=True)
            if (failed and not args.go_on) or time.monotonic() - begun > args.seconds:
                break
    seconds = time.monotonic() - begun
    print(
        f"seeds {args.first} to {args.first + done - 1}: {done} runs in {seconds:.0f} s, "
        f"{done / seconds:.0f}/s with {args.jobs} processes; {len(wrong)} wrong"
    )
    for name, count in sorted(counts.items()):
        print(f"  {name:32} {count:>10}  {count / max(1, done):8.2f} a run")
    return 1 if wrong else 0


def play(seeds: Iterable[int], *, packs: bool) -> tuple[Counter[str], list[str], int]:
    counts: Counter[str] = Counter()
    wrong = []
    size = 0
    gc.disable()  # a run is one large cycle, which is collected once it is over
    for seed in seeds:
        size += 1
        try:
            counts += run(seed, packs=packs)
        except Wrong as fault:
            wrong.append(str(fault))
    gc.collect()
    return counts, wrong, size


def replay(seed: int, *, packs: bool) -> int:
    try:
        run(seed, print, packs=packs)
    except Wrong as fault:
        print(fault)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
