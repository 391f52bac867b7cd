"""What a node costs that does nothing: memory, CPU time and wake-ups of all its processes, etcd's left out. proc(5).

Memory is PSS: a page that several processes have counts for each of them in its part, so that the sum over the
processes of a machine is what they take of it. Three nodes on one machine share pages of files, which a node that is
alone on its machine does not; `file` says how much that can be."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.cluster.running import Node
from bench.measure.figures import Figures
from bench.process import cpu_s, read, tree

SETTLE_S = 10.0  # after the start: what was begun has ended


class Memory(NamedTuple):
    """KiB, summed over processes. pss: proportional; anonymous: of it, what is in no file
    file: resident pages of files, those of the process that has most"""

    pss: int
    anonymous: int
    file: int


def memory_of(pid: int) -> Memory:
    """Of a process and its descendants."""
    rows = [rollup(read(Path(f"/proc/{each}/smaps_rollup"))) for each in tree(pid)]
    return Memory(
        sum(row.get("Pss", 0) for row in rows), sum(row.get("Pss_Anon", 0) for row in rows),
        max(row.get("Rss", 0) - row.get("Anonymous", 0) for row in rows),
    )  # fmt: skip


def rollup(text: str) -> dict[str, int]:
    """KiB by name."""
    fields = [line.split() for line in text.splitlines()]
    return {each[0].rstrip(":"): int(each[1]) for each in fields if len(each) == 3 and each[2] == "kB"}


def wakes_of(pid: int) -> int:
    """How often the threads of a process and its descendants have waited, and were woken, so far."""
    return sum(
        int(line.split()[1])
        for each in tree(pid)
        for path in Path(f"/proc/{each}/task").glob("*/status")
        for line in read(path).splitlines()
        if line.startswith("voluntary_ctxt_switches")
    )


def idle(nodes: Sequence[Node], seconds: float) -> Figures:
    """Medians over the nodes of a cluster that has no clients."""
    time.sleep(SETTLE_S)
    began = time.monotonic()
    before = [(cpu_s(node.pid), wakes_of(node.pid)) for node in nodes]
    time.sleep(seconds)
    spent = time.monotonic() - began
    after = [(cpu_s(node.pid), wakes_of(node.pid)) for node in nodes]
    memory = [memory_of(node.pid) for node in nodes]
    return {
        "memory of a node, PSS, MiB": statistics.median(each.pss for each in memory) / 1024,
        "of it anonymous, MiB": statistics.median(each.anonymous for each in memory) / 1024,
        "pages of files in one process, MiB": statistics.median(each.file for each in memory) / 1024,
        "CPU of a node, % of a core": 100
        * statistics.median((now[0] - then[0]) / spent for then, now in zip(before, after, strict=True)),
        "wake-ups of a node, a second": statistics.median(
            (now[1] - then[1]) / spent for then, now in zip(before, after, strict=True)
        ),
    }
