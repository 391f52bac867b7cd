"""Messages are published when they are due. The clock is the test's."""

from collections.abc import Sequence

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")

import trio

from rumq.client import Outgoing
from rumq.spark.job_kit.pacing import Due, Paced, pace


class Broker:
    """Takes messages, each batch in `seconds` of its own clock."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.time, self.seconds = 100.0, seconds
        self.taken: list[tuple[float, str]] = []

    async def publish(self, messages: list[Outgoing]) -> None:
        self.taken += [(self.time - 100.0, one.topic) for one in messages]
        self.time += self.seconds

    async def sleep_until(self, time: float) -> None:
        self.time = max(self.time, time)


def paced(broker: Broker, dues: Sequence[float]) -> Paced:
    messages = [Due(seconds, Outgoing(str(n), b"")) for n, seconds in enumerate(dues)]
    return trio.run(pace, messages, broker.publish, lambda: broker.time, broker.sleep_until)


def test_each_goes_when_it_is_due_and_none_before() -> None:
    broker = Broker()
    assert paced(broker, [0.0, 1.0, 1.004, 1.5, 60.0]) == Paced(5, 0.0)
    assert [topic for _, topic in broker.taken] == list("01234")
    assert [time for time, _ in broker.taken] == pytest.approx([0.0, 1.004, 1.004, 1.5, 60.0])


def test_who_is_late_goes_on_at_once_and_says_so() -> None:
    """A broker that takes 2 s a batch: what was due meanwhile follows without another wait."""
    broker = Broker(2.0)
    done = paced(broker, [0.0, 1.0, 1.5, 10.0])
    assert [time for time, _ in broker.taken] == pytest.approx([0.0, 2.0, 4.0, 10.0])
    assert done.messages == 4 and done.late_s == pytest.approx(2.49)


def test_nothing_is_nothing() -> None:
    assert paced(Broker(), []) == Paced(0, 0.0)
