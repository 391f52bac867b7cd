"""Runs spin over the model: every state, or the shortest run that breaks an assertion without one rule."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
MODEL = "replication.pml"
TRACES = HERE / "traces"
SECONDS_MAX = 600


class Dropped(NamedTuple):
    """A rule of docs/explanation/replication.md that can be dropped. flag: of the model; others: bounds, and what
    happens"""

    flag: str
    rule: str
    what: str
    others: tuple[str, ...] = ("CRASHES=1", "LSNS=1")


RESTORED = ("RESTORES=1", "CRASHES=0", "LSNS=1")
NOTICED = ("OLD=1", "CRASHES=0", "LSNS=1")
UNNOTICED = ("UNNOTICED=1", "CRASHES=0", "LSNS=1")
MEMBERS = ("CHANGE", "CRASHES=0", "LSNS=1")

DROPPED = [
    Dropped("NO_R1", "R1", "a claim's epoch heeds the record alone", (*RESTORED, "ONLY_LOSS")),
    Dropped("NO_R2", "R2", "a claimant chooses a log before a majority has promised"),
    Dropped("NO_R2_LOST", "R2", "a promise is lost in a crash"),
    Dropped("NO_R2_ID", "R2", "an epoch that was promised is promised to another claim", (*RESTORED, "ONLY_LOSS")),
    Dropped("NO_R2B", "R2", "the members are those of the record", ("CHANGE", "FIRST=2", *RESTORED)),
    Dropped("NO_R2C", "R2", "a change is noted as opened before it is fenced", ("CHANGE", "TERMS=4", *RESTORED)),
    Dropped("NO_R2C_COPIES", "R2", "followers open a change before it is fenced", ("CHANGE", "TERMS=4", *RESTORED)),
    Dropped("NO_R3", "R3", "the longest log wins, whatever epoch it has opened"),
    Dropped("NO_R3_IDS", "R3", "two terms of one epoch are told apart by length", ("RESTORES=1", *UNNOTICED)),
    Dropped("NO_R3_MARK", "R3", "a log is adopted that ends below a mark", UNNOTICED),
    Dropped("NO_R4_COUNT", "R4", "copies count before they have opened the term"),
    Dropped("NO_R4_NOTE", "R4", "a copy notes the term before it has everything of before it"),
    Dropped("NO_R5", "R5", "followers take frames of an epoch older than promised"),
    Dropped("NO_R5_MARK", "R5", "a copy is cut below its mark", UNNOTICED),
    Dropped("NO_R5_KEPT", "R5", "a mark bounds the cut of a log that is older than it", ("IMAGES=1", *NOTICED)),
    Dropped("NO_R5_TOLD", "R5", "marks are told of copies that were not compared", ("MARKS", "CRASHES=0", "LSNS=1")),
    Dropped("NO_R6", "R6", "a follower acknowledges before its sync"),
    Dropped("NO_R7", "R7", "while members change, a majority of the new ones is enough", MEMBERS),
    Dropped("NO_R7_OWN", "R7", "a leader commits what it has not synced itself", MEMBERS),
    Dropped("NO_SETTLE", "R7", "a change of members ends before its term is open", MEMBERS),
    Dropped("NO_R11", "R11", "a doubted copy counts", (*NOTICED, "ONLY_LOSS")),
    Dropped(
        "NO_R11_COMPLETE", "R11", "a copy is sound again without what it had acknowledged", (*NOTICED, "ONLY_LOSS")
    ),
    Dropped(
        "NO_R11_ALL",
        "R11",
        "a copy that has forgotten promises follows whoever asks",
        ("RESTORES=1", *NOTICED, "ONLY_LOSS"),
    ),
    Dropped("NO_R11_FLOOR", "R11", "... also below the epoch of the record", NOTICED),
    Dropped("NO_R11_SERVE", "R11", "a log is adopted from a copy that has come to be doubted", NOTICED),
]


class Search(NamedTuple):
    """Bounds in which every state is visited, and nothing breaks. what: happens; is_long: too long for the gate"""

    what: str
    flags: tuple[str, ...]
    is_long: bool = False


SEARCHES = [
    Search("crashes and lost links alone", ()),
    Search("members change, the record goes back", ("CHANGE", "FIRST=2", *RESTORED)),
    Search("the record goes back", ("RESTORES=1", "CRASHES=1", "LSNS=1")),
    Search("a disk goes back or is emptied, and is noticed", ("IMAGES=1", *NOTICED), True),
    Search("... and the record, too", ("RESTORES=1", *NOTICED), True),
    Search("a disk goes back, and is not noticed", ("IMAGES=1", *UNNOTICED)),
    Search("crashes alone, a term more", ("TERMS=4",), True),
    Search("members change", ("CHANGE", "CRASHES=1"), True),
    Search("... to the first leader's loss", ("CHANGE", "CRASHES=1", "LSNS=1", "FIRST=2"), True),
    Search("members change, the record goes back", ("CHANGE", *RESTORED), True),
    Search("... a term more", ("CHANGE", "TERMS=4", "FIRST=2", *RESTORED), True),
    Search("the record goes back", ("RESTORES=1", "CRASHES=1"), True),
    Search("... a term more", ("RESTORES=1", "TERMS=4", "CRASHES=1", "LSNS=1"), True),
    Search("... twice", ("RESTORES=2", "TERMS=4", "CRASHES=0", "LSNS=1"), True),
    Search("a disk is emptied, and is noticed", ("OLD=1", "CRASHES=0"), True),
    Search("... and crashes", ("OLD=1", "CRASHES=1", "LSNS=1"), True),
    Search("two disks", ("OLD=2", "CRASHES=0", "LSNS=1"), True),
    Search("a disk goes back, is noticed, and the record", ("RESTORES=1", "IMAGES=1", *NOTICED), True),
    Search("an emptied disk, the record, and crashes", ("OLD=1", "RESTORES=1", "CRASHES=1", "LSNS=1"), True),
    Search("members change, a disk is emptied, and is noticed", ("CHANGE", *NOTICED), True),
    Search("... and the record goes back", ("CHANGE", "RESTORES=1", "FIRST=2", *NOTICED), True),
    Search("a disk goes back unnoticed, and the record", ("RESTORES=1", "IMAGES=1", *UNNOTICED), True),
    Search("one disk unnoticed, one noticed", ("OLD=1", *UNNOTICED), True),
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
    for part in HERE.glob("*.pml"):
        shutil.copy(part, folder)
    run(folder, "spin", *defines, "-a", MODEL)
    search = ["-DBFS"] if shortest else []
    # Without a rule a fault is found within a second; to optimise takes longer.
    optimise = "-O0" if any(flag.startswith("NO_") for flag in flags) else "-O2"
    run(folder, "gcc", optimise, "-w", "-DSAFETY", "-DHC4", "-DNOREDUCE", *search, "-o", "pan", "pan.c")
    said = run(folder, "./pan", "-E", "-m20000", "-w25")
    if "max search depth too small" in said or ("Search not completed" in said and "errors: 0" in said):
        raise AssertionError(said)
    states = re.search(r"(\d+) states, stored", said)
    seconds = re.search(r"elapsed time ([\d.]+)", said)
    assert states is not None, said
    is_broken = "errors: 0" not in said
    trace = run(folder, "spin", *defines, "-T", "-t", MODEL) if is_broken else ""
    return Outcome(is_broken, int(states[1]), float(seconds[1]) if seconds else 0.0, told(trace))


def told(trace: str) -> str:
    """The steps alone, without spin's account of the variables."""
    steps = trace.partition("spin: text of failed assertion")[0]
    return "".join(f"{line}\n" for line in steps.splitlines() if line and not line.startswith("spin:"))


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    output = done.stdout + done.stderr
    if command[0] == "gcc" or (command[0] == "spin" and "-a" in command):
        assert done.returncode == 0, output
    return output
