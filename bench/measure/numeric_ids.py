"""What a number instead of a name saves: `python -m bench.measure.numeric_ids`. In one process, without sockets.

A message's topic is looked up once by its name, in the kernel's table; from there on it is a number, in the log, in
the routes, between shards. What every later step would cost by name is measured beside it."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable

from router.kernels import routes
from router.kernels.filter_index import FilterIndex
from rumq.mqtt.kernels.topics import TopicTable

TOPICS = 10_000
ROWS = 100_000


def nanoseconds(work: Callable[[], object], times: int, items: int) -> float:
    """The best of `times` runs, for each item."""
    best = float("inf")
    for _ in range(times):
        begin = time.perf_counter_ns()
        work()
        best = min(best, time.perf_counter_ns() - begin)
    return best / items


def figures(topics: int = TOPICS, rows: int = ROWS, times: int = 5) -> dict[str, float]:
    """Nanoseconds for a message: its name to its number, its number to its route, its name to its filters."""
    names = [b"plant/%d/line/temp" % number for number in range(topics)]
    table = TopicTable(1)
    for number, name in enumerate(names):
        table[name] = number
    filters = FilterIndex()
    for number in range(100):
        filters.add(f"plant/{number}/#")
    filters.add("plant/+/line/temp")
    packed = array("I", [0] * 8 * rows)
    for row in range(rows):
        packed[row * 8] = row % topics
    laid_out = packed.tobytes()
    route_of = array("I", [1 + number % 3 for number in range(topics)])
    texts = [name.decode() for name in names]
    return {
        "name to number": nanoseconds(lambda: [table[name] for name in names], times, topics),
        "number to route": nanoseconds(lambda: routes.routes_in(laid_out, 0, rows, route_of, 1), times, rows),
        "name to filters": nanoseconds(lambda: [filters.match(text) for text in texts], times, topics),
    }


if __name__ == "__main__":
    for step, cost in figures().items():
        print(f"{step:20}{cost:10.1f} ns")
