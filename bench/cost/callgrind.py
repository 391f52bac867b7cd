"""callgrind: a broker that runs under it, and what it counted, by function and by module.

Instructions of user space do not depend on the load of the machine. Counting begins once clients are connected, so that
the start takes seconds and not minutes. valgrind(1), and "Callgrind format specification" in its manual."""

import os
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from bench.connections import BenchFault
from bench.load.load import Load
from bench.peers.peer import DAEMONS, Peer

ORDER_S = 60.0
NAMED = re.compile(r"^(c?fn|c?ob)=\((\d+)\)(?: (.*))?$")
COST = re.compile(r"^[+*-]?[\d*]+ (\d+)$")
OURS = ("commitlog", "router", "rumq")
ROUNDS = 60  # of passing the cost of the interpreter on to who called it; nothing to speak of is left after fewer


def why_not() -> str:
    """Why nothing can be counted here; empty where it can."""
    if missing := [name for name in ("valgrind", "vgdb") if shutil.which(name) is None]:
        return f"{missing[0]} is not installed: `apt-get install valgrind`"
    return ""


class UnderCallgrind:
    """A peer that runs under callgrind, at first without counting. folder: where it writes"""

    def __init__(self, peer: Peer, folder: Path) -> None:
        self.name, self._peer, self._folder = peer.name, peer, folder

    def why_not(self, load: Load) -> str:
        return self._peer.why_not(load)

    def durability(self, load: Load) -> str:
        return self._peer.durability(load)

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        program, *arguments = self._peer.command(load, folder, port)
        found = shutil.which(program, path=os.environ.get("PATH", "") + DAEMONS)
        return [
            "valgrind", "--tool=callgrind", "--instr-atstart=no", "--dump-line=no", f"--vgdb-prefix={self._pipes}",
            f"--callgrind-out-file={self._folder / 'counted'}", found or program, *arguments,
        ]  # fmt: skip

    def version_command(self) -> list[str]:
        return self._peer.version_command()

    @property
    def _pipes(self) -> Path:
        return self._folder / "vgdb"

    def order(self, pid: int, *words: str) -> None:
        """Have the running broker count (`instrumentation on`, `off`), forget (`zero`) or write (`dump`)."""
        command = ["vgdb", f"--vgdb-prefix={self._pipes}", f"--pid={pid}", *words]
        said = subprocess.run(command, capture_output=True, text=True, timeout=ORDER_S, check=False)
        if said.returncode:
            raise BenchFault(f"vgdb {' '.join(words)}: {said.stderr.strip()[-300:]}")

    def counted(self) -> "Counts":
        """What was written last."""
        written = sorted(self._folder.glob("counted.*"), key=lambda path: int(path.suffix[1:]))
        if not written:
            raise BenchFault("callgrind wrote nothing")
        return parse(written[-1].read_text(errors="replace"))


class Function(NamedTuple):
    name: str
    place: str  # file of the program or library


class Counts(NamedTuple):
    """own: instructions of each function itself; calls: (caller, called) -> those of the calls, all within included"""

    own: Counter[Function]
    calls: Counter[tuple[Function, Function]]

    @property
    def total(self) -> int:
        return self.own.total()


def parse(text: str) -> Counts:
    """Read a file of callgrind's, of one event."""
    own: Counter[Function] = Counter()
    calls: Counter[tuple[Function, Function]] = Counter()
    names: dict[tuple[str, str], str] = {}
    current = {"ob": "", "fn": "", "cob": "", "cfn": ""}
    is_call = False
    for line in text.splitlines():
        if found := NAMED.match(line):
            key, number, name = found.groups()
            kind = key[-2:]
            if name is not None:
                names[kind, number] = name
            current[key] = names[kind, number]
            if key == "fn":
                current["cob"] = ""
        elif line.startswith("calls="):
            is_call = True
        elif found := COST.match(line):
            function = Function(current["fn"], current["ob"])
            if is_call:
                calls[function, Function(current["cfn"], current["cob"] or current["ob"])] += int(found[1])
                is_call, current["cob"] = False, ""
            else:
                own[function] += int(found[1])
    return Counts(own, calls)


def module_of(function: Function) -> str:
    """The compiled module that a function is in, as `package.module`; empty: it is of the interpreter or a library."""
    parts = Path(function.place).parts
    if not parts or ".cpython-" not in parts[-1] or "site-packages" in parts or "lib-dynload" in parts:
        return ""
    for top in OURS:
        if top in parts:
            at = len(parts) - 1 - parts[::-1].index(top)
            return ".".join((*parts[at:-1], parts[-1].partition(".")[0]))
    return ""


def by_module(counts: Counts) -> dict[str, tuple[int, int]]:
    """Module -> (instructions of its own, these and those of the interpreter and of libraries that it called).

    What a library's function takes is passed on to its callers, by what their calls took. What belongs to no module,
    such as functions that are not compiled, is under "interpreter"."""
    callers: dict[Function, list[tuple[Function, int]]] = defaultdict(list)
    for (caller, called), cost in counts.calls.items():
        if caller != called and cost and not module_of(called):
            callers[called].append((caller, cost))
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    waiting: dict[Function, float] = {}
    for function, cost in counts.own.items():
        name = module_of(function)
        own[name or "interpreter"] += cost
        if name:
            whole[name] += cost
        else:
            waiting[function] = cost
    for _ in range(ROUNDS):
        passed: dict[Function, float] = defaultdict(float)
        for function, left in waiting.items():
            above = callers.get(function, ())
            total = sum(of for _, of in above)
            if not total:
                whole["interpreter"] += round(left)
            for caller, of in above:
                if name := module_of(caller):
                    whole[name] += round(left * of / total)
                else:
                    passed[caller] += left * of / total
        waiting = passed
    whole["interpreter"] += round(sum(waiting.values()))
    return {name: (own[name], cost) for name, cost in whole.most_common()}
