"""`python -m tests.bridge.cuts`: a line that is cut anywhere or unplugged, processes that are killed; what was lost or
doubled."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.bridge.cuts.run import Plan, run
from tests.bridge.cuts.transports import SCHEMES, transport_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bridge.cuts", description=__doc__)
    add = parser.add_argument
    add("--cuts", type=int, default=1_000, metavar="N", help="of the line [1000]")
    add("--kills", type=int, default=100, metavar="N", help="SIGKILL of bridge, edge, centre, in turn [100]")
    add("--seconds", type=float, default=3_600.0, metavar="S", help="end then, whatever is left [3600]")
    add("--unplugged", type=float, default=0.0, metavar="S", help="then the line takes nothing for so long [0]")
    add("--transport", choices=SCHEMES, default="mqtt", help="of the line [mqtt]")
    add("--seed", type=int, default=1, metavar="N", help="[1]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        transport = transport_of(args.transport, Path(folder))
        plan = Plan(args.cuts, args.kills, args.seconds, args.seed, args.unplugged, transport)
        outcome = run(plan, lambda line: print(line, flush=True))
    found = outcome.found
    print(f"{outcome.cuts} cuts, {outcome.kills} kills, {outcome.connections} times connected, seed {args.seed}")
    print(f"{'':6}{'messages':>12}{'lost':>8}{'doubled':>9}")
    for qos in (1, 2):
        print(f"QoS {qos} {found.messages[qos]:>12,}{found.lost[qos]:>8,}{found.doubled[qos]:>9,}")
    print(f"topics in another order: {found.disordered}")
    for line in found.examples[:10]:
        print(line)
    return 0 if found.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
