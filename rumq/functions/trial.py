"""A function tried before it is used: loaded, and called once with a batch that has no rows."""

from __future__ import annotations

from rumq.functions.function_rows import no_rows
from rumq.functions.rules import FunctionRules
from rumq.functions.worker_process import FunctionFault, WorkerProcess


def maybe_fault(rules: FunctionRules) -> str | None:
    """What is wrong with it, in a line; None: it was loaded and its result is one. raises: OSError"""
    worker = WorkerProcess(rules)
    try:
        worker.wait_ready()
        worker.call(no_rows())
    except FunctionFault as fault:
        return fault.why if fault.kind == "load" else f"called with a batch without rows: {fault.why}"
    finally:
        worker.close()
    return None
