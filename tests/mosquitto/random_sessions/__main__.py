"""`python -m tests.mosquitto.random_sessions`: many random sessions at rumqd and mosquitto, one after the other.

Exit status: 0 all the same, or mosquitto is not installed; 1 there were differences, which are printed."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.mosquitto.mosquitto_process import why_not
from tests.mosquitto.random_sessions.brokers import both
from tests.mosquitto.random_sessions.play import Session


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mosquitto.random_sessions", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many [200]")
    parser.add_argument("--first", type=int, default=0, help="the first seed [0]")
    parser.add_argument("--shards", type=int, default=1, help="of rumqd [1]")
    args = parser.parse_args()
    if reason := why_not():
        print(reason, file=sys.stderr)
        return 0
    failed = 0
    with tempfile.TemporaryDirectory(prefix="random-sessions-") as folder, both(Path(folder), args.shards) as brokers:
        for seed in range(args.first, args.first + args.seeds):
            if (found := Session(seed, brokers).play()) is not None:
                failed += 1
                print(f"seed {seed}: rumqd is the first broker\n{found}", flush=True)
    print(f"{args.seeds} sessions, {failed} of them differ")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
