"""`python -m tests`: style, types and the whole suite as groups, each a process of its own, several at once.

A group is a folder of tests. Its ports, data directories and temporary files are its own, so groups share no state. The
longest start first, so that no core waits; those that measure latency run last, one at a time on a quiet machine.

Exit status: 0 everything passed; 1 a group failed: its output is printed, and all such groups are named at the end.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PLAIN = ROOT / "build" / "plain"
BIN = Path(sys.executable).parent
PYTEST = (sys.executable, "-m", "pytest", "-m", "not long")
AT_ONCE_MAX = 4  # tests start brokers and clients: a group uses more than one core at times

# Seconds of each group on two cores, to start the longest first: wrong ones cost time, nothing else.
SECONDS = {
    "spark": 500, "cli": 500, "cluster/live": 400, "gateway": 250, "docs": 270, "page": 270, "cluster": 200,
    "faults": 200, "attacks": 160, "limits": 160, "queues": 130, "process": 90, "net and interop": 105, "flight": 70,
    "client": 60, "session": 60, "records": 55, "lake": 50, "services": 205, "kafka": 80, "mosquitto": 50,
    "commitlog": 45, "tests/*.py": 40, "conformance, not compiled": 35, "conformance, two shards": 35,
    "conformance": 35, "shards": 35,
    "sink": 75, "bench": 55, "embedded": 35, "functions": 35, "packaging": 30, "types": 25,
}  # fmt: skip
SECONDS_OF_OTHERS = 20
TOGETHER = {"net and interop": ("net", "interop")}  # both install MQTT.js into tests/interop/node_modules
APART = ("cluster/live",)  # of the rest of its folder: it waits for real clusters, the rest computes
ALONE = ("isolation",)


class Group(NamedTuple):
    """commands: run in order, until one fails"""

    name: str
    commands: Sequence[Sequence[str]]
    environment: dict[str, str] | None = None


class Result(NamedTuple):
    group: Group
    failed: bool
    seconds: float
    cpu_seconds: float
    output: str


def groups() -> Iterator[Group]:
    """Each folder of tests once, and conformance twice more: not compiled, and on two shards."""
    ruff = f"{BIN}/ruff"
    yield Group("style", [[ruff, "check", "."], [ruff, "format", "--check", "."]])
    yield Group("types", [[f"{BIN}/mypy"]])
    folders = {path.parent.relative_to(ROOT / "tests").parts[:1] for path in ROOT.glob("tests/*/**/test_*.py")}
    names = {part[0] for part in folders}
    for name, joined in TOGETHER.items():
        yield Group(name, [[*PYTEST, *(f"tests/{folder}" for folder in joined)]])
        names -= set(joined)
    for name in [*sorted(names), *APART]:
        without = [f"--ignore=tests/{part}" for part in APART if part.startswith(f"{name}/")]
        yield Group(name, [[*PYTEST, f"tests/{name}", *without]])
    yield Group("tests/*.py", [[*PYTEST, *(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/test_*.py"))]])
    conformance = [*PYTEST, "tests/conformance"]
    is_plain = "import sys; from rumq.version import kernels; sys.exit(kernels() != 'python' and kernels())"
    yield Group(
        "conformance, not compiled",
        [[sys.executable, "-c", is_plain], conformance],
        {"PYTHONSAFEPATH": "1", "PYTHONPATH": f"{PLAIN}:{ROOT}"},
    )
    # One of the shards writes: whatever a client does, the other one may be involved.
    one_partition = '[{name="main", filters=["#"], partitions=1}]'
    yield Group("conformance, two shards", [conformance], {"RUMQ_SHARDS_COUNT": "2", "RUMQ_STREAM": one_partition})


def copy_sources() -> None:
    """The product without compiled modules, into build/plain."""
    shutil.rmtree(PLAIN, ignore_errors=True)
    without = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    for package in ("rumq", "router", "commitlog"):
        shutil.copytree(ROOT / package, PLAIN / package, ignore=without)


running: set[subprocess.Popen[str]] = set()


def run(group: Group) -> Result:
    start, output, status, cpu = time.monotonic(), "", 0, 0.0
    for command in group.commands:
        try:
            process = subprocess.Popen(
                command, cwd=ROOT, env=os.environ | (group.environment or {}), text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except OSError as fault:
            output, status = f"{output}{fault}\n", 127
            break
        running.add(process)
        assert process.stdout is not None
        output += process.stdout.read()
        _, how, usage = os.wait4(process.pid, 0)
        status = process.returncode = os.waitstatus_to_exitcode(how)
        cpu += usage.ru_utime + usage.ru_stime
        running.discard(process)
        if status:
            break
    return Result(group, status != 0, time.monotonic() - start, cpu, output)


def run_all(part: Sequence[Group], at_once: int) -> list[Group]:
    """Report each group at its end; returns those that failed."""
    failed = []
    pool = ThreadPoolExecutor(at_once)
    try:
        for future in as_completed([pool.submit(run, group) for group in part]):
            result = future.result()
            report(result)
            if result.failed:
                failed.append(result.group)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(running):  # none, unless we are interrupted
            process.send_signal(signal.SIGINT)  # pytest runs its fixtures' ends: brokers are stopped
    return failed


def report(result: Result) -> None:
    last = (result.output.strip().splitlines() or [""])[-1]
    if result.failed:
        print(f"\n===== FAILED: {result.group.name}\n{result.output}", flush=True)
    else:
        seconds = f"{result.seconds:5.0f} s  cpu {result.cpu_seconds:4.0f} s"
        print(f"passed  {seconds}  {result.group.name:<26} {last}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "-j", "--at-once", type=int, default=min(os.cpu_count() or 1, AT_ONCE_MAX), metavar="N",
        help="groups at once [one a core, at most 4]",
    )  # fmt: skip
    parser.add_argument("names", nargs="*", metavar="GROUP", help="only these, such as cli or types [all]")
    args = parser.parse_args()
    found = sorted(groups(), key=lambda group: -SECONDS.get(group.name, SECONDS_OF_OTHERS))
    if unknown := set(args.names) - {group.name for group in found}:
        parser.error(f"no group {unknown}; there are {', '.join(group.name for group in found)}")
    found = [group for group in found if not args.names or group.name in args.names]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    copy_sources()
    failed = run_all([group for group in found if group.name not in ALONE], args.at_once)
    failed += run_all([group for group in found if group.name in ALONE], 1)
    for group in failed:
        print(f"FAILED: {group.name}: " + " && ".join(map(shlex.join, group.commands)))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
