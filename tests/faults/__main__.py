"""The whole proof, as one command: `python -m tests.faults [--quick]`. Prints a table; exit status 1 if anything fails.

Everything random comes from seeds that are printed, so that what failed can be done again."""

import argparse
import os
import re
import subprocess
import sys
import time
from typing import NamedTuple


class Part(NamedTuple):
    what: str
    tests: tuple[str, ...]


PARTS = [
    Part("kill -9 at random times and at each kind of file system call", ("tests/faults/kill/test_kills.py",)),
    Part("kill -9 of one shard of several, and of all", ("tests/faults/kill/test_shards.py",)),
    Part("a live cluster: nodes, shards, etcd killed, paused, cut off", ("tests/cluster/live/test_live.py",)),
    Part("several shards under a seeded simulation", ("tests/simulation/test_simulation.py",)),
    Part("power loss on a simulated disk", ("tests/faults/test_power_loss.py",)),
    Part("torn tails and damage told apart", ("tests/faults/test_torn_or_damaged.py",)),
    Part("each single flipped bit", ("tests/faults/test_flipped_bits.py",)),
    Part("mutated files for the parsers", ("tests/faults/test_mutated_files.py",)),
    Part("failing calls, at each site", ("tests/faults/test_failing_calls.py",)),
    Part("a disk that is full, failing, or gone", ("tests/faults/test_full_disk.py",)),
    Part("clocks that jump", ("tests/faults/test_clocks.py",)),
    Part("sessions, killed in each exchange", ("tests/faults/kill/test_sessions.py",)),
    Part("how long a start takes", ("tests/limits/test_restart.py",)),
    Part("how long a look-up takes", ("tests/limits/test_lookups.py",)),
    Part("planted faults, each caught", ("tests/faults/test_planted.py",)),
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the short forms, as in the gate")
    parser.add_argument("--episodes", type=int, default=80, help="of 25 kills each [80]")
    args = parser.parse_args()
    failed = []
    for part in PARTS:
        began = time.monotonic()
        # "long or not long" is everything: the short forms stand beside the long ones.
        marker = "not long" if args.quick else "long or not long"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-v", "-m", marker, *part.tests],
            env=os.environ | {"RUMQ_EPISODES": str(args.episodes)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        verdict = lines[-1].strip("= ") if lines else "nothing was run"
        sound = done.returncode in (0, 5)  # 5: it has a long form only
        print(
            f"{'ok  ' if sound else 'FAIL'}  {part.what}: {verdict} [{time.monotonic() - began:.0f} s]",
            flush=True,
        )
        for line in lines:
            if re.search(r"seed|ready after|to record|states|warm", line) and not line.startswith("tests/"):
                print(f"        {line.strip()}", flush=True)
        if not sound:
            failed.append(part.what)
            print(done.stdout, flush=True)
    print("all of it holds" if not failed else f"broken: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
