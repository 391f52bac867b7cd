"""Runs spin over `replication.pml`: every state, or the shortest run that breaks an assertion without one rule."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
MODEL = HERE / "replication.pml"
TRACES = HERE / "traces"
SECONDS_MAX = 600


class Dropped(NamedTuple):
    """A rule of docs/replication.md that the model can do without. flag: of the model"""

    flag: str
    rule: str
    what: str
    others: tuple[str, ...] = ()


DROPPED = [
    Dropped("NO_R1", "R1", "a claim that does not name the record it replaces: two leaders in one epoch"),
    Dropped("NO_R2", "R2", "a claimant chooses a log before a majority has promised"),
    Dropped("NO_R2_LOST", "R2", "a promise is lost in a crash"),
    Dropped("NO_R3", "R3", "the longest log wins, whatever epoch it has opened"),
    Dropped("NO_R4_COUNT", "R4", "copies count before they have opened the term"),
    Dropped("NO_R4_NOTE", "R4", "a copy notes the term before it has everything of before it"),
    Dropped("NO_R5", "R5", "followers take frames of an epoch older than promised"),
    Dropped("NO_R6", "R6", "a follower acknowledges before its sync"),
    Dropped("NO_R7", "R7", "while members change, a majority of the new ones is enough", ("CHANGE",)),
    Dropped("NO_R7_OWN", "R7", "a leader commits what it has not synced itself", ("CHANGE",)),
    Dropped("NO_SETTLE", "R7", "a change of members ends before its term is open", ("CHANGE",)),
]


class Outcome(NamedTuple):
    """is_broken: an assertion is; states: stored; seconds: of the search; trace: what happened, "" if it holds"""

    is_broken: bool
    states: int
    seconds: float
    trace: str


def missing_tool() -> str:
    """The name of what is not installed, "" if nothing is missing."""
    return next((tool for tool in ("spin", "gcc") if shutil.which(tool) is None), "")


def check(folder: Path, flags: tuple[str, ...], *, shortest: bool = False) -> Outcome:
    """In an empty folder. shortest: search in breadth, so that the trace is short"""
    defines = [f"-D{flag}" for flag in flags]
    model = folder / MODEL.name
    model.write_text(MODEL.read_text())
    run(folder, "spin", *defines, "-a", model.name)
    search = ["-DBFS"] if shortest else []
    run(folder, "gcc", "-O2", "-w", "-DSAFETY", "-DHC4", "-DNOREDUCE", *search, "-o", "pan", "pan.c")
    said = run(folder, "./pan", "-E", "-m1000000")
    if "max search depth too small" in said or ("Search not completed" in said and "errors: 0" in said):
        raise AssertionError(said)
    states = re.search(r"(\d+) states, stored", said)
    seconds = re.search(r"elapsed time ([\d.]+)", said)
    assert states is not None, said
    is_broken = "errors: 0" not in said
    trace = run(folder, "spin", *defines, "-T", "-t", model.name) if is_broken else ""
    return Outcome(is_broken, int(states[1]), float(seconds[1]) if seconds else 0.0, told(trace))


def told(trace: str) -> str:
    """The steps alone, without spin's account of the variables."""
    steps = trace.partition("spin: text of failed assertion")[0]
    return "".join(f"{line}\n" for line in steps.splitlines() if line and not line.startswith("spin:"))


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    output = done.stdout + done.stderr
    if command[0] == "gcc" or (command[0] == "spin" and "-a" in command):
        assert done.returncode == 0, output
    return output
