"""`rumq.follow`: records as they arrive. docs/guides/read.md, "Follow"."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rumq
from rumq.records import follower
from rumq.records.follower import PAUSE_SECONDS_MAX, Follower, begin
from rumq.records.log_source import options_of
from rumq.table.errors import BadOption, DataLoss
from tests.spark.histories import History
from tests.spark.logs import Publisher, message, store_at

Place = Callable[[str], str]


class Clock:
    """Seconds that pass by waiting; what is planned happens during one of the waits."""

    def __init__(self, *events: Callable[[], object]) -> None:
        self.now, self.pauses, self._events = 0.0, [], list(events)

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        if self._events:
            self._events.pop(0)()


def following(source: str, clock: Clock, *, idle: float = 2.0, columns: Any = ("lsn",), **given: Any) -> Follower:
    options = options_of(source, given.pop("topics", None), given.pop("start", "latest"), None, given, now_us=0)
    return Follower(options, columns, idle_seconds_max=idle, wait=clock.wait, now=lambda: clock.now)


def column(batches: Any, name: str = "lsn") -> list[Any]:
    return [value for batch in batches for value in batch.column(name).to_pylist()]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    """Its messages are readable once they are marked: this process is no broker that holds it."""
    made = store_at(str(tmp_path / "data"), partitions=2)
    yield made
    made.close()


@pytest.fixture
def root(tmp_path: Path, store: Any) -> str:
    return str(tmp_path / "data")


def test_new_records_come_once_and_in_order_and_quiet_ends_it(place: Place, root: str, store: Any) -> None:
    publisher = Publisher(store.own[0])
    publisher.chunk([message("old", b"")] * 5)
    clock = Clock(
        lambda: publisher.chunk([message("plant/7", b"1"), message("plant/7", b"2")]),
        lambda: None,
        lambda: publisher.chunk([message("plant/7", b"3")]),
    )
    found = following(place(root), clock, columns=("payload", "partition"))
    assert found.offsets == {"main/g1/p0": 5, "main/g1/p1": 0}
    assert column(found, "payload") == [b"1", b"2", b"3"]
    assert found.offsets == {"main/g1/p0": 8, "main/g1/p1": 0} and found.schema.names == [
        "payload",
        "partition",
    ]
    assert max(clock.pauses) == PAUSE_SECONDS_MAX and clock.now < 4, "it neither spins nor sleeps long"


def test_its_offsets_are_where_a_later_one_goes_on(place: Place, root: str, store: Any) -> None:
    for number, partition in enumerate(store.own):
        Publisher(partition).chunk([message("a", b"%d" % n) for n in range(3 + number)])
    first = following(place(root), Clock(), start="earliest", idle=0)
    batch = next(first)
    first.close()
    assert column([batch]) == [0, 1, 2] and first.offsets == {"main/g1/p0": 3, "main/g1/p1": 0}
    second = following(place(root), Clock(), start=first.offsets, idle=0, columns=("partition", "lsn"))
    assert column(second) == [0, 1, 2, 3] and second.offsets == {"main/g1/p0": 3, "main/g1/p1": 4}
    # A partition that appeared meanwhile is read from its first record; one that is gone keeps its offset.
    third = following(place(root), Clock(), start={"main/g1/p0": 3, "main/g0/p7": 9}, idle=0)
    assert third.offsets == {"main/g1/p0": 3, "main/g1/p1": 0, "main/g0/p7": 9}
    assert column(third) == [0, 1, 2, 3]


def test_other_topics_move_the_offsets_and_are_not_seen(place: Place, root: str, store: Any) -> None:
    publisher = Publisher(store.own[0])
    clock = Clock(lambda: publisher.chunk([message("other", b""), message("plant/7", b"1"), message("other", b"")]))
    found = following(place(root), clock, topics="plant/+", columns=("payload",))
    assert column(found, "payload") == [b"1"] and found.offsets["main/g1/p0"] == 3


def test_a_long_partition_does_not_keep_the_next_one_waiting(
    root: str, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "TURN_RECORDS_MAX", 4)
    for partition, count in zip(store.own, (10, 2), strict=True):
        Publisher(partition).chunk([message("a", b"")] * count)
    found = following(root, Clock(), start="earliest", idle=0, columns=("partition",))
    assert [name[-1] for name in column(found, "partition")] == list("000011") + list("000000")


def test_it_begins_in_the_lake_and_goes_on_in_the_log(place: Place, tmp_path: Path) -> None:
    history = History(tmp_path)
    history.publish(100)
    history.export()
    history.remove(2)
    clock = Clock(lambda: history.publish(20))
    found = following(place(history.data), clock, start="earliest", partitions=["main/g1/p1"])
    assert column(found) == list(range(1200))
    history.close()


def test_a_log_that_has_become_shorter_is_said(root: str, store: Any, tmp_path: Path) -> None:
    Publisher(store.own[0]).chunk([message("a", b"")] * 5)
    found = following(root, Clock())
    found.offsets["main/g1/p0"] = 9
    with pytest.raises(DataLoss, match=r"records 5 to 8 of main/g1/p0 .* another log"):
        next(found)


def test_a_name_that_is_no_partition_is_refused(root: str, store: Any) -> None:
    with pytest.raises(BadOption, match='option start = "main/g1/po": expected names of partitions'):
        rumq.follow(root, start={"main/g1/po": 5})


def test_a_topic_need_not_exist_yet(root: str, store: Any) -> None:
    assert list(rumq.follow(root, "nobody/yet", idle_seconds_max=0)) == []
    assert begin(options_of(root, None, "earliest", None, {}, now_us=0)) == {"main/g1/p0": 0, "main/g1/p1": 0}


def test_its_batches_have_its_schema(place: Place, root: str, store: Any) -> None:
    Publisher(store.own[0]).chunk([message("a", b"1")])
    found = rumq.follow(place(root), start="earliest", columns=["ts", "payload"], idle_seconds_max=0)
    assert pa.Table.from_batches(list(found), found.schema)["payload"].to_pylist() == [b"1"]
