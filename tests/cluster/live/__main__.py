"""`python -m tests.cluster.live`: so many harms to a live cluster, a table of gaps, and whether anything was lost."""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster.live.gaps import Gap, table
from tests.cluster.live.harm import ON_LOOPBACK
from tests.cluster.live.picture import draw
from tests.cluster.live.run import QUIET_S, LiveRun
from tests.cluster.live.time_travel import EVERY_KIND

RUN_HARMS = 50  # of one cluster; the next ones get a new one

EXAMPLES = """\
examples:
  python -m tests.cluster.live --harms 20                              of all kinds that need no root
  python -m tests.cluster.live --kind kill-node --harms 100 --picture docs/figures/cluster-gaps.svg
  python -m tests.cluster.live --kind cut-off --kind cut-out --harms 20     in network namespaces: root
  python -m tests.cluster.live --draw gaps.json --picture gaps.svg

exit status: 0 nothing is wrong; 1 something is
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.live", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--harms", type=int, default=20, metavar="N", help="[20]")
    add(
        "--kind",
        action="append",
        choices=list(EVERY_KIND),
        help=f"may be repeated [{', '.join(ON_LOOPBACK)}]",
    )
    add("--seed", type=int, default=1, help="[1]")
    add("--nodes", type=int, default=3, help="[3]")
    add("--away", type=float, default=60.0, metavar="S", help="how long etcd is away [60]")
    add(
        "--round-trip-ms",
        type=float,
        default=0.0,
        metavar="MS",
        help="between nodes, in namespaces: root [0]",
    )
    add("--calm", type=float, default=QUIET_S, metavar="S", help="before each harm [%(default)s]")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of each node")
    add("--data", type=Path, metavar="DIR", help="keep data and logs here [temporary]")
    add("--json", type=Path, metavar="FILE", help="append the gaps to this file, one a line")
    add("--draw", type=Path, metavar="FILE", help="harm nobody, draw the gaps of such a file")
    add("--picture", type=Path, metavar="FILE", help="draw the gaps as an SVG")
    args = parser.parse_args()
    gaps: list[Gap] = []
    wrong = 0
    if args.draw is not None:
        gaps = [Gap(**json.loads(line)) for line in args.draw.read_text().splitlines()]
    else:
        kinds = args.kind or list(ON_LOOPBACK)
        for number, left in enumerate(range(args.harms, 0, -RUN_HARMS)):
            seed = args.seed + number
            with tempfile.TemporaryDirectory(prefix="rumq-live-") as folder:
                data = (args.data or Path(folder)) / f"seed-{seed}"
                run = LiveRun(
                    data, seed, kinds, nodes=args.nodes, settings=args.set, away_s=args.away,
                    round_trip_s=args.round_trip_ms / 1000, calm_s=args.calm, tell=say
                )  # fmt: skip
                result = run.run(min(left, RUN_HARMS))
            say(result.report())
            gaps += result.gaps
            wrong += len(result.faults)
            if args.json is not None:
                with args.json.open("a") as file:
                    file.writelines(json.dumps(gap._asdict()) + "\n" for gap in result.gaps)
    print(table(gaps))
    if args.picture is not None:
        args.picture.write_text(draw(gaps))
    return 1 if wrong else 0


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
