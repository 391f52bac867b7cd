"""What is done once in every worker of Spark."""

import gc

_settled = False


def set_up_worker() -> None:
    """Take what is loaded out of the collector's sight: Spark runs a full collection after every task."""
    global _settled
    if not _settled:
        _settled = True
        gc.freeze()
