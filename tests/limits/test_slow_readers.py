"""A subscriber that stops reading costs no memory, holds up nobody, and loses nothing: the log is its queue."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.broker_process import Rumqd
from tests.limits.conftest import Run
from tests.limits.flood import PAYLOAD_BYTES, SECONDS_MAX, Flood

MESSAGES = 200_000_000 // PAYLOAD_BYTES
FIRST, SECOND = range(MESSAGES), range(MESSAGES, 2 * MESSAGES)
MEMORY_BYTES_MAX = 32 << 20


def flooded(broker: Rumqd, publisher: Flood, lively: Flood, numbers: range) -> tuple[float, int]:
    """Publish the numbers while the lively one takes them; returns what the broker spent and has then.

    returns: CPU seconds, bytes of memory"""
    before = broker.cpu_seconds()
    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(lively.take, len(numbers))
        publisher.publish(numbers)
        assert seen.result(SECONDS_MAX) == list(numbers), "the lively one has everything, in order"
    return broker.cpu_seconds() - before, broker.memory_bytes()


@pytest.mark.parametrize("qos", [0, 1])
def test_one_that_stops_reading_costs_nothing_and_gets_everything_later(run: Run, qos: int) -> None:
    broker = run()
    publisher, lively = Flood(broker.address, "publisher", qos), Flood(broker.address, "lively", qos)
    lively.subscribe()
    usual_seconds, usual_bytes = flooded(broker, publisher, lively, FIRST)
    stuck = Flood(broker.address, "stuck", qos, lasting=qos > 0)
    stuck.subscribe()
    seconds, memory = flooded(broker, publisher, lively, SECOND)
    assert memory - usual_bytes < MEMORY_BYTES_MAX
    assert seconds < 2 * usual_seconds + 0.5, "what the others wait for is not spent on the stuck one"
    assert stuck.take(MESSAGES) == list(SECOND), "and the stuck one has lost nothing"


def test_one_that_never_read_and_died_gets_everything_when_it_returns(run: Run) -> None:
    broker = run()
    stuck = Flood(broker.address, "stuck", 1, lasting=True)
    stuck.subscribe()
    Flood(broker.address, "publisher", 1).publish(FIRST)
    stuck.die()
    again = Flood(broker.address, "stuck", 1, lasting=True)
    assert again.session_present
    assert again.take(MESSAGES) == list(FIRST)
