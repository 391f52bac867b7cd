"""The garbage collector of a process that answers requests: gateway and gRPC."""

import gc

YOUNG_OBJECTS_MAX = 20_000


def freeze() -> None:
    """What is there stays. A batch of messages is thousands of objects, none in a cycle and all gone with the answer:
    looking through them each few hundred takes an eighth of the time of a queue."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX)
