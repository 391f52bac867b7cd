"""A broker's processes as the kernel sees them: CPU time, memory and written bytes, children included. proc(5)."""

import time
from pathlib import Path

CPUCLOCK_SCHED = 2


def tree(pid: int) -> list[int]:
    """`pid` and all its descendants that are alive."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            waiting += map(int, read(task).split())
    return found


def cpu_s(pid: int) -> float:
    """User and system time of `pid` and its descendants, all threads, ended ones too; exact to the ns."""
    return sum(process_cpu_s(one) for one in tree(pid))


def process_cpu_s(pid: int) -> float:
    try:
        # The clock of another process, as clock_getcpuclockid(3) makes it. /proc counts in steps of 10 ms.
        return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED)
    except OSError:
        return 0.0  # it has just ended


def resident_bytes(pid: int) -> int:
    """Memory of `pid` and its descendants; pages that several of them share count for each."""
    total = 0
    for one in tree(pid):
        for line in read(Path(f"/proc/{one}/status")).splitlines():
            if line.startswith("VmRSS:"):
                total += 1024 * int(line.split()[1])
    return total


def written_bytes(pid: int) -> int:
    """What `pid` and its descendants have had written to disks: pages as they became dirty, and direct writes.

    Of those that are alive; the bytes of files that were removed before they were written are left out."""
    total = 0
    for one in tree(pid):
        fields = dict(line.split(": ") for line in read(Path(f"/proc/{one}/io")).splitlines())
        total += int(fields.get("write_bytes", 0)) - int(fields.get("cancelled_write_bytes", 0))
    return total


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
