"""The broker that has started a process, as that sees it: it ends with the broker, however early that dies.

To a sidecar the broker says its process id in the environment. What it asks the kernel itself, when its modules are
imported, may be the id of whoever has adopted it by then. Knows no task and no thread."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

VARIABLE = "RUMQ_STARTED_BY"
PR_SET_PDEATHSIG = 1


def environment_of_sidecar() -> dict[str, str]:
    """Of this process, and who it is."""
    return {**os.environ, VARIABLE: str(os.getpid())}


def end_with_broker() -> int:
    """From now on the death of the broker kills this process; where it is dead already, this process ends now.

    returns: the process id of the broker, for `is_orphan`"""
    said = os.environ.get(VARIABLE, "")
    broker = int(said) if said.isdecimal() else os.getppid()
    if not ends_with(broker):
        sys.exit(0)
    return broker


def ends_with(parent: int) -> bool:
    """From now on the death of the parent kills this process; False: it is dead already, and nothing will. prctl(2)"""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    return not is_orphan(parent)


def is_orphan(broker: int) -> bool:
    """Whether the broker has died. A thread of it that ends sends the signal too early, or a setuid exec forgets it"""
    return os.getppid() != broker
