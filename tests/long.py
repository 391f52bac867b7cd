"""`python -m tests.long`: the tests marked `long`, file by file, and a dated table of what each file came to.

They take hours, as a soak has to; `--minutes` stops a file that takes longer, and the table says so: what is stopped
has not passed. Exit status: 0 all passed or were skipped; 1 a file failed or was stopped.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PYTEST = (sys.executable, "-m", "pytest", "-m", "long", "-o", "addopts=", "-q", "-p", "no:cacheprovider")
NO_TESTS = 5  # pytest's exit status
ENDING_SECONDS = 60.0  # for the fixtures of a file that is stopped
HEAD = "| tests | result | seconds |\n|---|---|---|"


class Ended(NamedTuple):
    """is_good: all passed or were skipped; output: of pytest"""

    file: str
    is_good: bool
    result: str
    seconds: float
    output: str = ""

    def row(self) -> str:
        return f"| `{self.file}` | {self.result} | {self.seconds:.0f} |"


def collected(where: Sequence[str]) -> list[str]:
    """The files that have such tests. raises: SystemExit if they cannot be collected"""
    done = subprocess.run([*PYTEST, "--collect-only", *where], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, NO_TESTS):
        sys.exit(done.stdout + done.stderr)
    return list(dict.fromkeys(line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line))


def run(file: str, seconds_max: float) -> Ended:
    began = time.monotonic()
    process = subprocess.Popen(
        [*PYTEST, file], cwd=ROOT, text=True, errors="replace", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    is_stopped = False
    try:
        output, _ = process.communicate(timeout=seconds_max)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # pytest runs the ends of its fixtures: brokers are stopped
        is_stopped = True
        try:
            output, _ = process.communicate(timeout=ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
    seconds = time.monotonic() - began
    if is_stopped:
        return Ended(file, False, f"stopped after {seconds_max / 60:g} minutes", seconds, output)
    summary = (output.strip().splitlines() or ["nothing was said"])[-1]
    return Ended(file, process.returncode == 0, summary.partition(" in ")[0].strip("= "), seconds, output)


def heading() -> Iterator[str]:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    yield f"Long tests of {commit.stdout.strip() or 'an unknown commit'}, {time.strftime('%d %B %Y')}, load "
    yield f"{os.getloadavg()[0]:.0f} on {os.cpu_count()} cores when they began:\n\n{HEAD}\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.long", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=120.0, metavar="N", help="for each file [120]")
    parser.add_argument("--table", type=Path, metavar="FILE", help="append the table to this file, too")
    parser.add_argument("where", nargs="*", metavar="PATH", help="only those of these files or folders [tests]")
    args = parser.parse_args()
    files = collected(args.where or ["tests"])
    say("".join(heading()), args.table)
    is_good = True
    for file in files:
        ended = run(file, args.minutes * 60)
        say(ended.row() + "\n", args.table)
        if not ended.is_good:
            is_good = False
            print(ended.output, file=sys.stderr)
    return 0 if is_good else 1


def say(text: str, table: Path | None) -> None:
    print(text, end="", flush=True)
    if table is not None:
        with table.open("a", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
