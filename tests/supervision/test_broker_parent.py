"""A sidecar ends with the broker that has started it, also where that died before the sidecar asked for its parent."""

import os
import signal
import subprocess
import sys

import pytest

SECONDS_MAX = 60
# Starts a sidecar as `Sidecars` does, says which one, and waits to be killed.
BROKER = """
import subprocess, sys
from rumq.supervision.broker_parent import environment_of_sidecar
sidecar = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=0, env=environment_of_sidecar())
print(sidecar.pid, flush=True)
sidecar.wait()
"""
# Its imports take until there is a line for it; then it begins, says so, and waits for the end of its broker.
SIDECAR = """
import sys, time
sys.stdin.readline()
from rumq.supervision.broker_parent import end_with_broker, is_orphan
broker = end_with_broker()
print("serves", flush=True)
while not is_orphan(broker):
    time.sleep(0.02)
"""


def start() -> tuple[subprocess.Popen[str], int]:
    broker = subprocess.Popen(
        [sys.executable, "-c", BROKER, SIDECAR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert broker.stdout is not None
    return broker, int(broker.stdout.readline())


def end(sidecar: int) -> None:
    try:
        os.kill(sidecar, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.mark.timeout(SECONDS_MAX)
@pytest.mark.parametrize("serves_before", [False, True])
def test_a_sidecar_ends_with_its_broker_however_early_that_dies(serves_before: bool) -> None:
    broker, sidecar = start()
    assert broker.stdin is not None and broker.stdout is not None
    try:
        if serves_before:
            broker.stdin.write("\n")
            broker.stdin.flush()
            assert broker.stdout.readline() == "serves\n"
        broker.kill()
        broker.wait()
        if not serves_before:
            broker.stdin.write("\n")
        broker.stdin.close()
        assert broker.stdout.readline() == "", "the sidecar has ended, and has begun to serve nobody"
    finally:
        end(sidecar)
