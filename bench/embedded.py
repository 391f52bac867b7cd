"""What a broker inside a program costs: `python -m bench.embedded [--times N]`, each beside a whole `rumqd` process.

first: the first broker of a program, whose template has to import everything; later: each one after it. Times end at
`broker.ready`; medians and the slowest. docs/decisions/0063-a-broker-inside-a-program.md"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import rumq
from rumq.embedded import template


def seconds_of(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def rumqd_seconds() -> float:
    """From the start of the process to its event."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "rumq", "run", "--host", "127.0.0.1", "--port", "0", "--data", folder]
        started = time.perf_counter()
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if b'"broker.ready"' in line:
                    break
            seconds = time.perf_counter() - started
            process.terminate()
        return seconds


def embedded_seconds() -> dict[str, float]:
    """One broker of this program: its start, a kill with a restart, its end."""
    found = {}
    block = rumq.broker()
    started = time.perf_counter()
    with block as broker:
        found["ready"] = time.perf_counter() - started
        found["kill"] = seconds_of(broker.kill)
        found["restart"] = seconds_of(broker.restart)
        ended = time.perf_counter()
    found["end"] = time.perf_counter() - ended
    return found


def measured(times: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for _ in range(times):
        found.setdefault("rumqd", []).append(rumqd_seconds())
        template.close()
        found.setdefault("first", []).append(embedded_seconds()["ready"])
        for what, seconds in embedded_seconds().items():
            found.setdefault("later" if what == "ready" else what, []).append(seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.embedded", description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    print(f"{'':<10}{'median ms':>12}{'slowest ms':>12}")
    for what, seconds in measured(parser.parse_args().times).items():
        print(f"{what:<10}{statistics.median(seconds) * 1000:>12.0f}{max(seconds) * 1000:>12.0f}")


if __name__ == "__main__":
    main()
