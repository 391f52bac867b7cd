"""CPU time and memory of a process with its children, from the kernel."""

import os
import subprocess
import sys
import time

from bench import process

# Spends 0.2 s of CPU time, in itself or in a child, says so and waits.
BURN = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"
BURN_IN_CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])"


def test_cpu_time_of_this_process_is_what_it_measures_itself() -> None:
    before = process.cpu_s(os.getpid()), time.process_time()
    while time.process_time() - before[1] < 0.05:
        pass
    assert process.cpu_s(os.getpid()) - before[0] >= 0.05


def test_children_count_with_their_parent() -> None:
    command = [sys.executable, "-c", BURN_IN_CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None and parent.stdin is not None
        parent.stdout.readline()
        assert len(process.tree(parent.pid)) == 2
        assert process.cpu_s(parent.pid) >= 0.2
        assert process.resident_bytes(parent.pid) > 2 * 2**20
        parent.stdin.write(b"\n")


def test_a_process_that_has_ended_counts_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert process.resident_bytes(ended.pid) == 0
    assert process.cpu_s(ended.pid) == 0.0
