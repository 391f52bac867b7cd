"""A function's worker is replaced when it ends, and a partition that fails waits longer each time, alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rumq
from rumq.errors import ConnectionLost
from rumq.functions.function_rows import no_rows
from rumq.functions.function_thread import RETRY_SECONDS, FunctionCaller, FunctionThread
from rumq.functions.rules import FunctionRules
from rumq.functions.worker_process import FunctionFault
from rumq.sink.sink_options import SinkOptions

RULES = FunctionRules("f", ("plant/#",), "f.py", "f/")


class FakeWorker:
    """answers: of its calls, in order: a batch, or a kind of fault"""

    def __init__(self, answers: list[str]) -> None:
        self._answers, self.is_closed = answers, False

    def wait_ready(self) -> None:
        if self._answers and self._answers[0] == "load":
            raise FunctionFault("load", self._answers.pop(0))

    def call(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        assert not self.is_closed
        if (answer := self._answers.pop(0)) != "ok":
            raise FunctionFault(answer, "why")  # type: ignore[arg-type]
        return batch

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("answers", "fault", "workers", "told"),
    [
        (["ok"], None, 1, 0),
        (["stalled", "ok"], None, 2, 1),
        (["died", "ok"], None, 2, 1),
        (["memory", "memory"], "memory", 2, 1),
        (["raised"], "raised", 1, 0),
        (["load"], "load", 1, 0),
    ],
)
def test_a_batch_whose_worker_ended_is_tried_once_more(
    answers: list[str], fault: str | None, workers: int, told: int
) -> None:
    made: list[FakeWorker] = []
    events: list[str] = []

    def start(_: FunctionRules) -> FakeWorker:
        made.append(FakeWorker(answers))
        return made[-1]

    caller = FunctionCaller(RULES, lambda event, /, **_: events.append(event), start=start)
    if fault is None:
        assert caller.call(no_rows()) is not None
    else:
        with pytest.raises(FunctionFault, match=fault):
            caller.call(no_rows())
    assert len(made) == workers and events == ["function.restarted"] * told
    assert [each.is_closed for each in made[:-1]] == [True] * (workers - 1)
    caller.close()
    assert made[-1].is_closed


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def thread(data: Path, folder: Path, publish: Callable[..., int], events: list[dict[str, Any]], clock: Clock) -> Any:
    def event(event: str, /, **fields: Any) -> None:
        events.append({"event": event, **fields})

    broker = SinkOptions("", 0, False)
    return FunctionThread(RULES, str(data), folder, broker, publish, event, now=clock, now_us=lambda: 1)


def test_a_broker_that_is_away_is_waited_for_longer_each_time(tmp_path: Path) -> None:
    with rumq.broker(data=tmp_path / "data"):
        pass
    events: list[dict[str, Any]] = []
    clock = Clock()
    away = thread(tmp_path / "data", tmp_path / "f", lambda *_: 0, events, clock)
    away._log.look = lambda: (_ for _ in ()).throw(ConnectionLost("away"))
    for seconds in RETRY_SECONDS:
        assert away.turn() == 0 and away.turn() == 0, "the second one waits"
        assert events[-1]["retry_seconds"] == seconds
        clock.now += seconds
    assert [each["event"] for each in events] == ["function.waits"] * len(RETRY_SECONDS)


def test_a_partition_that_comes_later_is_read_from_its_first_record(tmp_path: Path) -> None:
    with rumq.broker(data=tmp_path / "data"):
        pass
    found = thread(tmp_path / "data", tmp_path / "f", lambda *_: 0, [], Clock())
    assert found._is_new
    found.turn()
    assert not found._is_new
    (tmp_path / "f" / "main-g1-p0.json").touch()
    assert not thread(tmp_path / "data", tmp_path / "f", lambda *_: 0, [], Clock())._is_new
