"""A neighbour as a process of its own: `python -m bench.isolation.neighbour`.

It runs when nobody else wants a core (SCHED_IDLE, sched(7)): nice would let it keep one for milliseconds."""

import os
import sys
import time

import msgspec

from bench.connections import BenchFault, allow_files
from bench.isolation.acts import ACTS
from bench.isolation.others import say
from bench.isolation.task import Did, Failed, NeighbourTask, Ready


def run(task: NeighbourTask) -> None:
    act = ACTS[task.act](task.address, task.options)
    act.prepare()
    # Only now: what it prepares, somebody waits for.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    say(Ready())
    if not sys.stdin.readline():
        return
    before_s = time.process_time()
    figures = act.misbehave(time.monotonic() + task.seconds)
    say(Did(figures=figures, cpu_s=time.process_time() - before_s))
    sys.stdin.readline()


if __name__ == "__main__":
    allow_files()
    try:
        run(msgspec.json.decode(sys.stdin.readline(), type=NeighbourTask))
    except (BenchFault, OSError) as fault:
        say(Failed(why=f"the neighbour: {type(fault).__name__}: {fault}"))
        sys.exit(1)
