"""However often it ends between two steps, each record's result is published once, in order; a failure has its rule."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rumq.errors import ConnectionLost
from rumq.functions.function_counts import FunctionCounts
from rumq.functions.function_rows import SCHEMA, messages_of
from rumq.functions.partition_function import BatchHeld, FunctionPorts, PartitionFunction
from rumq.functions.rules import FunctionRules, OnFailure
from rumq.functions.worker_process import FunctionFault
from rumq.sink.sink_connection import SinkPartition
from rumq.sink.sink_options import SinkOptions

PARTITION = "main/g1/p0"


class Crash(BaseException):
    """The process ends here."""


class Site:
    """A log, a function that gives another result each time, and a broker whose sink is exactly once by batch.

    crash_at: the number of the step (a read, a call, a publication's begin and end) at which the process ends"""

    def __init__(self, folder: Path, *, count: int = 10, on_failure: OnFailure = "hold", fails: str = "") -> None:
        self.folder, self.count, self.first = folder, count, 0
        self.rules = FunctionRules("f", ("#",), "f.py", "f/", on_failure=on_failure, records_max=3)
        self.fails = fails  # the kind of fault of a batch that has record 4
        self.published: dict[int, list[str]] = {}
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.calls = 0
        self.steps, self.crash_at = 0, -1
        self.counts = FunctionCounts()

    def step_ends(self) -> None:
        self.steps += 1
        if self.steps == self.crash_at:
            raise Crash

    def ends(self, partition: str) -> tuple[int, int]:
        return self.first, self.count

    def end_within(self, partition: str, start: int, end: int, bytes_max: int) -> int:
        return end

    def batches(self, partition: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        self.step_ends()
        yield pa.RecordBatch.from_pylist([{"topic": f"t/{lsn}", "payload": b"x"} for lsn in range(start, end)], SCHEMA)

    def call(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.step_ends()
        self.calls += 1
        if self.fails and "t/4" in batch.column("topic").to_pylist():
            raise FunctionFault("raised" if self.fails != "load" else "load", "ValueError: no number")
        payload = pa.array([f"{self.calls}".encode()] * batch.num_rows)  # another one each time
        return messages_of(batch.set_column(batch.schema.get_field_index("payload"), "payload", payload))

    def publish(self, rows: Iterator[pa.RecordBatch], options: SinkOptions, partition: SinkPartition) -> int:
        found = [(row["topic"], row["payload"]) for each in rows for row in each.to_pylist()]
        self.step_ends()
        before = self.published.get(partition.batch)
        assert before is None or before == found, "the sink would refuse rows that have changed"
        if found:
            self.published[partition.batch] = found
        self.step_ends()
        return len(found)

    def function(self) -> PartitionFunction:
        ports = FunctionPorts(
            self, self.call, self.publish, lambda event, /, **fields: self.events.append((event, fields)), self.counts,
            lambda: 1000,
        )  # fmt: skip
        return PartitionFunction(self.rules, PARTITION, self.folder, SinkOptions("", 0, False), ports)

    def run(self) -> None:
        function = self.function()
        while function.step():
            pass

    @property
    def topics(self) -> list[str]:
        return [topic for batch in sorted(self.published) for topic, _ in self.published[batch]]


EVERYTHING = [f"f/t/{lsn}" for lsn in range(10)]


def test_results_are_published_in_order(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.run()
    assert site.topics == EVERYTHING
    assert site.counts.figures()["records"] == 10 and site.function().behind() == 0
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"], "no result is left"


@pytest.mark.parametrize("crashes", [1, 2])
def test_it_may_end_at_any_step(tmp_path: Path, crashes: int) -> None:
    """While the log grows: what was begun is the same batch afterwards."""
    site = Site(tmp_path / "whole")
    (tmp_path / "whole").mkdir()
    site.run()
    steps = range(1, site.steps + 1)
    for number, places in enumerate(itertools.product(steps, repeat=crashes)):
        folder = tmp_path / str(number)
        folder.mkdir()
        site = Site(folder, count=8)
        for place in places:
            site.steps, site.crash_at = 0, place
            try:
                site.run()
            except Crash:
                site.count = 10
        site.count = 10
        site.crash_at = -1
        site.run()
        assert site.topics == EVERYTHING, places


@pytest.mark.parametrize(
    ("rule", "topics", "counted"),
    [
        ("pass", EVERYTHING, "passed"),
        ("refuse", [each for each in EVERYTHING if each not in ("f/t/3", "f/t/4", "f/t/5")], "refused"),
    ],
)
def test_a_batch_that_failed_has_its_rule(tmp_path: Path, rule: OnFailure, topics: list[str], counted: str) -> None:
    site = Site(tmp_path, on_failure=rule, fails="raised")
    site.run()
    assert site.topics == topics
    assert site.counts.figures()[counted] == 3 and site.counts.figures()["failures"]["raised"] == 1
    ((name, fields),) = site.events
    assert name == "function.failed"
    assert (fields["first_lsn"], fields["next_lsn"], fields["rule"]) == (3, 6, rule)
    assert (fields["kind"], fields["why"]) == ("raised", "ValueError: no number")
    if rule == "pass":
        assert site.published[1002][0] == ("f/t/3", b"x"), "as it was"


def test_a_batch_that_is_held_is_tried_again_and_nothing_goes_past_it(tmp_path: Path) -> None:
    site = Site(tmp_path, fails="raised")
    function = site.function()
    assert function.step() == 3
    for _ in range(3):
        with pytest.raises(BatchHeld):
            function.step()
    assert site.topics == EVERYTHING[:3] and function.behind() == 7
    site.fails = ""
    site.run()
    assert site.topics == EVERYTHING


def test_nothing_is_skipped_for_a_function_that_cannot_be_loaded(tmp_path: Path) -> None:
    site = Site(tmp_path, on_failure="refuse", fails="load")
    with pytest.raises(BatchHeld):
        site.run()
    assert site.events[-1][1]["rule"] == "hold"


def test_a_broker_that_is_away_is_no_failure_of_the_function(tmp_path: Path) -> None:
    site = Site(tmp_path)
    away = site.function()
    away._ports = away._ports.__class__(
        site, site.call, lambda *_: (_ for _ in ()).throw(ConnectionLost("away")), lambda *_, **__: None, site.counts,
        lambda: 1000,
    )  # fmt: skip
    for _ in range(2):
        with pytest.raises(ConnectionLost):
            away.step()
    assert site.calls == 1, "its result is kept"
    site.run()
    assert site.topics == EVERYTHING


def test_what_retention_has_removed_is_told(tmp_path: Path) -> None:
    site = Site(tmp_path, count=3)
    site.run()
    site.first, site.count = 5, 10
    site.run()
    assert site.topics == [*EVERYTHING[:3], *EVERYTHING[5:]]
    assert [(name, each["first_lsn"], each["next_lsn"]) for name, each in site.events] == [("function.gap", 3, 5)]


def test_where_it_begins(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.rules = FunctionRules("f", ("#",), "f.py", "f/", start="latest")
    site.run()
    assert site.topics == []
    site.count = 12
    site.run()
    assert site.topics == ["f/t/10", "f/t/11"]


def test_a_result_that_cannot_be_published_is_a_failure(tmp_path: Path) -> None:
    site = Site(tmp_path, on_failure="refuse")
    site.call = lambda batch: pa.record_batch(  # type: ignore[method-assign]
        {"topic": pa.array(["a/#"]), "payload": pa.array([b"x"])}
    )
    site.run()
    assert site.topics == [] and site.events[0][1]["kind"] == "result"
