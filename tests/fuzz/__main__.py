"""python -m tests.fuzz: inputs by the million for every door of the broker, each batch from its seed.

--inputs 100000000 --seed 7             all targets, each its share
--target codec --inputs 1000000         one of them
--seed 7 --target codec --first 123 --inputs 1    one batch again
--asan                                  the same with kernels that AddressSanitizer watches, built for that"""

import argparse
import json
import os
import subprocess
import sys
import threading
from collections import Counter

from tests.fuzz.campaign import Wrong, campaign
from tests.fuzz.targets import SHARES, TARGETS

HANGING_SECONDS = 120.0  # without a batch coming to its end


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=1_000_000, help="how many in all [1000000]")
    parser.add_argument("--seed", type=int, default=0, help="where all chance comes from [0]")
    parser.add_argument("--first", type=int, default=0, help="the first batch [0]")
    parser.add_argument("--target", choices=list(TARGETS), help="this one only")
    parser.add_argument("--asan", action="store_true", help="under AddressSanitizer")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.target, args.seed, args.first, args.inputs)
    environment = dict(os.environ)
    if args.asan:
        from tests.fuzz.asan import built, is_caught

        environment = built()
        print(f"AddressSanitizer: {is_caught(environment)}", flush=True)
    failed = 0
    for name in [args.target] if args.target else list(TARGETS):
        inputs = args.inputs if args.target else args.inputs * SHARES[name] // 1000
        failed += watch(name, args.seed, args.first, max(1, inputs), environment)
    print("nothing was found" if not failed else f"{failed} targets have found something")
    return 1 if failed else 0


def watch(name: str, seed: int, first: int, inputs: int, environment: dict[str, str]) -> int:
    """Run a target in a process of its own, so that its death can be told of; returns how often it failed: 0 or 1."""
    command = [sys.executable, "-m", "tests.fuzz", "--child", "--target", name]
    command += ["--seed", str(seed), "--first", str(first), "--inputs", str(inputs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    batch = first

    def hangs() -> None:
        print(f"{name}, seed {seed}, batch {batch}: nothing came of it for {HANGING_SECONDS:.0f} s", flush=True)
        process.kill()

    timer = threading.Timer(HANGING_SECONDS, hangs)
    timer.start()
    for line in process.stdout:
        timer.cancel()
        if line.startswith("{"):
            report(name, seed, json.loads(line))
        elif line.startswith("batch "):
            batch = int(line.split()[1])
        else:
            print(line, end="", flush=True)
        timer = threading.Timer(HANGING_SECONDS, hangs)
        timer.start()
    timer.cancel()
    status = process.wait()
    if status not in (0, 1):  # 1: it has said itself what it found
        again = f"python -m tests.fuzz --target {name} --seed {seed} --first {batch} --inputs 1"
        print(
            f"{name}, seed {seed}, batch {batch}: the process ended with {status}\n  again: {again}",
            flush=True,
        )
    return 1 if status else 0


def report(name: str, seed: int, told: dict[str, object]) -> None:
    counts = Counter(told["counts"])  # type: ignore[call-overload]
    inputs, seconds = told["inputs"], told["seconds"]
    assert isinstance(inputs, int) and isinstance(seconds, float)
    print(
        f"{name}: {inputs:,} inputs, seed {seed}, {told['batches']} batches, {seconds:.1f} s of processor time, "
        f"{inputs / max(seconds, 1e-9):,.0f}/s, memory {told['before']} -> {told['after']} MiB",
        flush=True,
    )
    for what, count in counts.most_common():
        print(f"    {what:32} {count:>12,}", flush=True)


def child(name: str, seed: int, first: int, inputs: int) -> int:
    target = TARGETS[name]()
    target.tail = "RUMQ_FUZZ_ASAN" not in os.environ
    try:
        found = campaign(target, seed, inputs=inputs, first=first, at=lambda batch: print("batch", batch, flush=True))
    except Wrong as wrong:
        print(wrong, flush=True)
        return 1
    finally:
        target.close()
    told = {
        "inputs": found.inputs, "batches": found.batches, "seconds": found.seconds, "counts": found.counts,
        "before": found.bytes_before >> 20, "after": found.bytes_after >> 20,
    }  # fmt: skip
    print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
