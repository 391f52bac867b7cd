"""The profilers: perf(1), or py-spy where there is no perf. Each watches a running broker with all its threads."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from bench import process
from bench.connections import BenchFault
from bench.profile.stacks import Stack, from_perf, from_py_spy

HERTZ = 997  # a prime, so that nothing periodic is hit always or never
STACK_BYTES = 8192
SETTLE_S, END_S = 0.3, 300.0
PATHS = os.pathsep.join((os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)))


class Recorder(Protocol):
    name: str

    def command(self, pids: list[int], out: Path) -> list[str]:
        """What samples `pids` into `out` until it gets SIGINT."""

    def stacks(self, out: Path) -> Counter[Stack]:
        """What was sampled. raises: BenchFault"""


class Perf:
    name = "perf"

    def command(self, pids: list[int], out: Path) -> list[str]:
        """Unwound by DWARF: neither the interpreter nor compiled modules keep frame pointers."""
        watched = ",".join(map(str, pids))
        return ["perf", "record", "-q", "-F", str(HERTZ), "--call-graph", f"dwarf,{STACK_BYTES}",
                "-p", watched, "-o", str(out)]  # fmt: skip

    def stacks(self, out: Path) -> Counter[Stack]:
        command = ["perf", "script", "-i", str(out), "--no-inline", "-F", "comm,ip,sym,dso"]
        said = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=END_S, check=False)
        if said.returncode:
            raise BenchFault(f"perf script: {said.stderr.strip()[-300:]}")
        return from_perf(said.stdout.splitlines())


class PySpy:
    name = "py-spy"

    def command(self, pids: list[int], out: Path) -> list[str]:
        return ["py-spy", "record", "--native", "--nonblocking", "--rate", str(HERTZ), "--format", "raw",
                "--pid", str(pids[0]), "--output", str(out)]  # fmt: skip

    def stacks(self, out: Path) -> Counter[Stack]:
        if not out.exists():
            raise BenchFault("py-spy wrote nothing: it may need root")
        return from_py_spy(out.read_text(errors="replace").splitlines())


def installed(path: str = PATHS) -> Recorder:
    """raises: BenchFault, which says what to install"""
    for recorder in (Perf(), PySpy()):
        if shutil.which(recorder.name, path=path):
            return recorder
    raise BenchFault(
        "neither perf nor py-spy is installed: `apt-get install linux-perf`, or `pip install py-spy` (Python frames)"
    )


@contextmanager
def recording(recorder: Recorder, pid: int, out: Path) -> Iterator[None]:
    """Sample the broker `pid` and its children meanwhile. raises: BenchFault"""
    words = out.with_suffix(".output")
    with words.open("wb") as sink:
        started = subprocess.Popen(
            recorder.command(process.tree(pid), out), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
            env=os.environ | {"PATH": PATHS},
        )  # fmt: skip
    time.sleep(SETTLE_S)
    try:
        yield
        if started.poll() is not None:
            raise BenchFault(f"{recorder.name} ended early: {words.read_text(errors='replace').strip()[-300:]}")
    finally:
        if started.poll() is None:
            started.send_signal(signal.SIGINT)
        try:
            started.wait(END_S)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
