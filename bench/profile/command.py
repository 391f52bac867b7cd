"""`python -m bench profile SCENARIO`: one run of a scenario, its broker sampled meanwhile, a flame graph of that."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from bench.connections import BenchFault, allow_files
from bench.measure.measure import measure
from bench.peers import PEERS
from bench.peers.peer import running, version
from bench.profile.flame import WORDS, draw
from bench.profile.recorder import Recorder, installed, recording
from bench.profile.stacks import hottest, shares
from bench.suite.scenarios import SCENARIOS

OK, FAILED, REFUSED = 0, 1, 2
HOTTEST = 15


def main(arguments: Sequence[str]) -> int:
    args = parser().parse_args(arguments)
    try:
        recorder = installed()
    except BenchFault as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return REFUSED
    try:
        run(args, recorder)
    except (BenchFault, OSError) as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return FAILED
    return OK


def run(args: argparse.Namespace, recorder: Recorder) -> None:
    allow_files()
    scenario, peer = SCENARIOS[args.scenario], PEERS[args.peer]
    if why := peer.why_not(scenario.load):
        raise BenchFault(f"{peer.name}: {why}")
    with tempfile.TemporaryDirectory(prefix="bench-profile-") as folder:
        out = Path(folder) / "samples"
        with running(peer, scenario.load) as broker:
            pid = broker.pid

            def during() -> AbstractContextManager[None]:
                return recording(recorder, pid, out) if pid else nullcontext()

            figures = measure(scenario, broker, args.seconds, during=during)
        seen = recorder.stacks(out)
    if not seen:
        raise BenchFault(f"{recorder.name} saw nothing of {peer.name}")
    title = f"{scenario.title}: {peer.name} ({version(peer)}), by {recorder.name}"
    args.svg = args.svg or Path("bench-results") / f"flame-{scenario.key}-{peer.name}.svg"
    args.svg.parent.mkdir(parents=True, exist_ok=True)
    args.svg.write_text(draw(seen, title))
    print(title)
    for kind, share in shares(seen).items():
        print(f"{100 * share:6.1f} %  {WORDS[kind]}")
    print("the functions that most of it is spent in:")
    for frame, share in hottest(seen, HOTTEST):
        print(f"{100 * share:6.1f} %  {frame.name}  ({WORDS[frame.kind]})")
    for figure in scenario.figures:
        if figure in figures:
            print(f"{figure} {figures[figure]:,.6g} (while it was sampled)")
    print(f"flame graph: {args.svg}")


def sampled() -> list[str]:
    """The scenarios in which a broker has something to do."""
    return [key for key, scenario in SCENARIOS.items() if scenario.kind not in ("idle", "start")]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench profile", description=__doc__)
    made.add_argument("scenario", choices=sampled(), metavar="SCENARIO", help="as `python -m bench list` says")
    made.add_argument("--peer", choices=list(PEERS), default="rumq", help="[rumq]")
    made.add_argument("--seconds", type=float, default=5.0, metavar="S", help="of traffic [5]")
    made.add_argument("--svg", type=Path, metavar="FILE", help="[bench-results/flame-SCENARIO-PEER.svg]")
    return made
