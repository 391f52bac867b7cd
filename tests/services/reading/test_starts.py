"""Where a subscription begins, and its cursor: as bytes that any node takes."""

from pathlib import Path

import pytest

from commitlog import RealFiles
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView
from rumq.services.contract.faults import CallFault
from rumq.services.generated import broker_service_pb2 as pb
from rumq.services.kernels.record_messages import NEVER
from rumq.services.reading.starts import WantedRecords, begins_of, place_of, places_of
from tests.commitlog.records import NOW
from tests.spark.logs import Publisher, message, store_at

P0 = "main/g1/p0"


def views_of(root: Path) -> list[PartitionView]:
    """10 records of a and b in turns, 1 s between two pairs."""
    store = store_at(str(root))
    publisher = Publisher(store.own[0])
    for n in range(5):
        publisher.chunk([message("a", b""), message("b", b"")], NOW + n * 1_000_000)
    store.close()
    return LogReader(RealFiles(), str(root)).partitions()


def anything(topic: str) -> bool:
    return True


def test_places_of_a_request() -> None:
    request = pb.SubscribeRequest(
        topics={"a": pb.Start(), "b/#": pb.Start(position=pb.POSITION_EARLIEST), "c": pb.Start(id=5),
                "+": pb.Start(time_us=7)}
    )  # fmt: skip
    assert places_of(request) == {"a": "latest", "b/#": "earliest", "c": ("offset", 4), "+": ("time", 7)}
    with pytest.raises(CallFault, match=r"REQUEST_TOO_LARGE"):
        places_of(pb.SubscribeRequest(topics={f"t/{n}": pb.Start() for n in range(65)}))
    assert place_of("a", pb.Start(id=1)) == ("offset", 0)


def test_begins_in_the_log(tmp_path: Path) -> None:
    views = views_of(tmp_path / "d")
    places = {"#": "earliest", "a": ("offset", 3), "b": ("time", NOW + 1_000_000), "c": "latest", "d": ("offset", 2)}
    begins = begins_of(places, views)
    assert {name: begin.lsns[P0] for name, begin in begins.items()} == {"#": 0, "a": 6, "b": 3, "c": 10, "d": 10} | {
        "b": 2
    }
    wanted = WantedRecords.from_begins({name: begins[name] for name in ("a", "b", "c")})
    assert wanted.at == {P0: 2}
    assert wanted.from_where("a", P0, anything) == (NEVER, 3)
    assert wanted.from_where("b", P0, anything) == (2, NEVER)
    assert wanted.from_where("nowhere", P0, anything) is None
    assert wanted.from_where("a", P0, lambda _: False) is None
    assert wanted.from_where("b", "main/g1/p9", anything) == (0, NEVER)  # a partition that is new since


def test_the_earliest_of_several_counts(tmp_path: Path) -> None:
    begins = begins_of({"a": ("offset", 4), "+": ("time", NOW + 3_000_000), "#": "latest"}, views_of(tmp_path / "d"))
    assert WantedRecords.from_begins(begins).from_where("a", P0, anything) == (6, 4)


def test_a_cursor_has_begins_that_are_behind_it_and_no_others(tmp_path: Path) -> None:
    begins = begins_of({"a": "latest", "b": "earliest", "c": ("offset", 7)}, views_of(tmp_path / "d"))
    wanted = WantedRecords.from_begins(begins)
    wanted.at[P0] = 4
    again = WantedRecords.from_cursor(wanted.text(), ["a", "b", "c"])
    assert again.at == {P0: 4}
    assert again.from_where("a", P0, anything) == (10, NEVER)
    assert again.from_where("b", P0, anything) == (0, NEVER)
    assert again.from_where("c", P0, anything) == (NEVER, 7)
    wanted.at[P0] = 12
    assert len(wanted.text()) < 120
    assert WantedRecords.from_cursor(wanted.text(), ["a"]).from_where("a", P0, anything) == (0, NEVER)
