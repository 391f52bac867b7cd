"""How far queries are behind, told by the session. docs/guides/spark.md, "Lag"."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest
import trio

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")

import paho.mqtt.client as mqtt

from rumq.spark.runtime.query_lag import Lag, LagListener, LagPublisher, lag_of, report_lag
from tests.broker_process import Rumqd

SECONDS_MAX = 30.0


def offsets(**lsns: int) -> str:
    return json.dumps({"v": 1, "lsn": lsns})


def source(end: str | None, latest: str | None) -> Any:
    return SimpleNamespace(endOffset=end, latestOffset=latest)


def progress(*sources: Any, name: str | None = "hourly") -> Any:
    return SimpleNamespace(
        name=name, id="id-1", runId="run-1", batchId=7, timestamp="2026-11-21T06:00:00.000Z", sources=list(sources)
    )


def test_a_lag_is_counted_by_partition() -> None:
    """A partition that the query has not seen yet lags by all it has; one of two sources counts, the slower."""
    found = lag_of(progress(source(offsets(p0=10, p1=5), offsets(p0=30, p1=5, p2=4))))
    assert found is not None
    assert (found.partitions, found.behind_records, found.batch) == ({"p0": 20, "p1": 0, "p2": 4}, 24, 7)
    both = lag_of(progress(source(offsets(p0=10), offsets(p0=30)), source(offsets(p0=25), offsets(p0=31))))
    assert both is not None and both.partitions == {"p0": 20}


def test_a_query_of_other_sources_has_none() -> None:
    for end, latest in (
        (None, None),
        ("5", "6"),
        ('{"kafka": {"0": 5}}', '{"kafka": {"0": 9}}'),
        ("x", "[]"),
    ):
        assert lag_of(progress(source(end, latest))) is None
    mixed = lag_of(progress(source("5", "6"), source(offsets(p0=1), offsets(p0=3))))
    assert mixed is not None and mixed.behind_records == 2


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("hourly", "rumq/spark/hourly/lag"),
        ("a/b+#", "rumq/spark/a%2Fb%2B%23/lag"),
        (None, "rumq/spark/id-1/lag"),
    ],
)
def test_any_name_of_a_query_is_one_level(name: str | None, topic: str) -> None:
    found = lag_of(progress(source(offsets(p0=1), offsets(p0=3)), name=name))
    assert found is not None and found.topic == topic


def test_a_query_that_ended_says_so_and_a_callback_that_fails_ends_nothing(caplog: Any) -> None:
    told: list[Lag] = []

    def tell(lag: Lag) -> None:
        told.append(lag)
        raise RuntimeError("the callback is broken")

    listener = LagListener(tell)
    listener.onQueryProgress(SimpleNamespace(progress=progress(source(offsets(p0=1), offsets(p0=3)))))
    listener.onQueryTerminated(SimpleNamespace(runId="other", exception=None))
    listener.onQueryTerminated(SimpleNamespace(runId="run-1", exception="it broke\n\tat line 1"))
    assert [(lag.running, lag.why, lag.behind_records) for lag in told] == [
        (True, "", 2),
        (False, "it broke", 2),
    ]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Rumqd]:
    made = Rumqd(tmp_path / "broker")
    made.start()
    yield made
    made.end()


class Watcher:
    """What is retained or said of lags, at a broker."""

    def __init__(self, broker: Rumqd) -> None:
        self.said: list[dict[str, Any]] = []
        self.topics: set[str] = set()
        self._changed = threading.Condition()
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        self.client.on_connect = lambda *_: self.client.subscribe("rumq/spark/+/lag", 1)
        self.client.on_message = self._take
        self.client.connect(broker.address.host, broker.address.port)
        self.client.loop_start()

    def _take(self, _client: Any, _data: Any, message: Any) -> None:
        with self._changed:
            self.topics.add(message.topic)
            self.said.append(json.loads(message.payload))
            self._changed.notify_all()

    def wait_for_end(self) -> dict[str, Any]:
        with self._changed:
            ended = lambda: [one for one in self.said if not one["running"]]  # noqa: E731
            assert self._changed.wait_for(ended, SECONDS_MAX), self.said
            return ended()[0]

    def leave(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.spark
def test_the_lag_of_a_query_is_published_after_each_batch_and_retained(
    spark: Any, data: str, broker: Rumqd, tmp_path: Path
) -> None:
    """300 records, 100 a batch: 200 behind, 100, 0, and then it has ended; also to a callback."""
    told: Queue[Lag] = Queue()
    live = Watcher(broker)
    listeners = [report_lag(spark, f"mqtt://{broker.address.host}:{broker.address.port}"), report_lag(spark, told.put)]
    query = (
        spark.readStream.format("rumq").option("maxOffsetsPerTrigger", 100).load(data)
        .writeStream.format("noop").queryName("slow one").option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    last = live.wait_for_end()
    lags = [told.get(timeout=SECONDS_MAX) for _ in range(4)]  # Spark tells them on a thread of its own
    for listener in listeners:
        spark.streams.removeListener(listener)
    late = Watcher(broker)
    assert late.wait_for_end() == last
    for watcher in (live, late):
        watcher.leave()
    assert live.topics == late.topics == {"rumq/spark/slow one/lag"} and len(late.said) == 1
    assert [(lag.batch, lag.partitions, lag.running) for lag in lags] == [
        (0, {"main/g1/p0": 200}, True), (1, {"main/g1/p0": 100}, True), (2, {"main/g1/p0": 0}, True),
        (2, {"main/g1/p0": 0}, False),
    ]  # fmt: skip
    # The newest waits while a publish is on its way, so a watcher may see fewer, in order.
    batches = [(one["batch"], one["behind_records"]) for one in live.said]
    assert batches == sorted(batches) and batches[-1] == (2, 0)
    assert (last["query"], last["id"], last["why"]) == ("slow one", str(query.id), "")


class Door:
    """Lets connections through to a broker; the first only until its client has published something, which is lost."""

    def __init__(self, broker: Rumqd) -> None:
        self._broker = broker
        self.port, self.closed = 0, threading.Event()
        self._bound = threading.Event()
        threading.Thread(target=trio.run, args=(self._run,), daemon=True).start()
        assert self._bound.wait(SECONDS_MAX)

    async def _run(self) -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listener.socket.getsockname()[1]
        self._bound.set()
        await trio.serve_listeners(self._let, [listener])

    async def _let(self, stream: trio.SocketStream) -> None:
        there = await trio.open_tcp_stream(*self._broker.address)
        if not self.closed.is_set():
            await there.send_all(await stream.receive_some())  # CONNECT
            await stream.send_all(await there.receive_some())  # CONNACK
            assert await stream.receive_some()
            await stream.aclose()
            self.closed.set()
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._pump, stream, there, nursery.cancel_scope)
            nursery.start_soon(self._pump, there, stream, nursery.cancel_scope)

    async def _pump(self, one: trio.SocketStream, other: trio.SocketStream, scope: trio.CancelScope) -> None:
        async for chunk in one:
            await other.send_all(chunk)
        scope.cancel()


def test_the_newest_lag_waits_while_there_is_no_connection(broker: Rumqd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rumq.spark.runtime.query_lag.RETRY_SECONDS", 0.01)
    door = Door(broker)
    tell = LagPublisher(f"mqtt://127.0.0.1:{door.port}")
    tell(Lag("q", "id", 1, "", 10, {}))
    tell(Lag("q", "id", 2, "", 5, {}, running=False))
    assert door.closed.wait(SECONDS_MAX)
    watcher = Watcher(broker)
    assert watcher.wait_for_end()["batch"] == 2
    watcher.leave()
