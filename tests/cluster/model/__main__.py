"""python -m tests.cluster.model: visit every state, and write the trace that each rule prevents into traces/."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cluster.model.checker import DROPPED, SEARCHES, TRACES, Outcome, check, missing_tool


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.model", description=__doc__)
    parser.add_argument("flags", nargs="*", help="of the model, such as CHANGE TERMS=4 CRASHES=1: check only that")
    parser.add_argument("--traces", action="store_true", help="only those")
    parser.add_argument("--long", action="store_true", help="the long searches, too: an hour, 8 GB")
    args = parser.parse_args()
    tool = missing_tool()
    if tool:
        print(f"{tool} is not installed")
        return 2
    if args.flags:
        return told(args.flags, outcome(tuple(args.flags)))
    wrong = 0
    for search in SEARCHES:
        if not args.traces and (args.long or not search.is_long):
            wrong += told(search.flags, outcome(search.flags))
    TRACES.mkdir(exist_ok=True)
    for dropped in DROPPED:
        flags = (dropped.flag, *dropped.others)
        found = outcome(flags, shortest=True)
        wrong += not found.is_broken
        told(flags, found)
        (TRACES / f"{dropped.flag}.txt").write_text(f"Without {dropped.rule}: {dropped.what}.\n\n{found.trace}")
    return int(wrong > 0)


def outcome(flags: tuple[str, ...], *, shortest: bool = False) -> Outcome:
    with TemporaryDirectory() as folder:
        return check(Path(folder), flags, shortest=shortest)


def told(flags: Sequence[str], found: Outcome) -> int:
    verdict = "an assertion is broken" if found.is_broken else "holds in all states"
    print(
        f"{' '.join(flags) or '3 replicas':50} {verdict}, {found.states} states, {found.seconds:.1f} s",
        flush=True,
    )
    return int(found.is_broken)


if __name__ == "__main__":
    sys.exit(main())
