"""Kernel: ids of messages, many at once."""

import cython

from rumq.queues.rules.messages import Pushed
from rumq.queues.rules.names import MessageId

# As a NamedTuple makes itself, without the call of a Python function for each.
new = tuple.__new__


def put_ids(
    results: list,
    numbers: list,
    at: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    topic: str,
    number: cython.longlong,
) -> None:
    """Ids `number + 1` and following of a topic into the results that numbers[at:at + count] say."""
    i: cython.Py_ssize_t
    for i in range(count):
        results[numbers[at + i]] = new(Pushed, (new(MessageId, (topic, number + i + 1)),))
