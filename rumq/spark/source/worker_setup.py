"""One-time setup of a Spark worker process."""

import gc

_is_set_up = False


def set_up_worker() -> None:
    """Exclude loaded modules from garbage collection: Spark runs a full collection after every task."""
    global _is_set_up
    if not _is_set_up:
        _is_set_up = True
        gc.freeze()
