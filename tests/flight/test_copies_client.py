"""A client of several copies of a log: each record once, from whichever copy is alive and has it."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rumq.flight.copies_client import CopiesClient
from rumq.flight.errors import Away
from rumq.flight.tickets import Ticket
from rumq.table.broker_options import maybe_flight_location
from rumq.table.errors import BadOption, DataLoss
from rumq.table.flight_location import FlightLocation, maybe_addresses
from tests.flight.served import served
from tests.flight.test_process import ByHand
from tests.spark.logs import Publisher, message, store_at

P0 = "main/g1/p0"


def copies_at(root: Path, chunks: int, *, size: int = 50, shorter_by: int = 0) -> tuple[str, str]:
    """Two copies of a log of ten records a chunk. shorter_by: chunks that the first one lacks"""
    store = store_at(str(root / "a"), segment_bytes_max=64 << 20)
    publisher = Publisher(store.own[0])
    for number in range(chunks):
        if number == chunks - shorter_by:
            shutil.copytree(root / "a", root / "b")
        publisher.chunk([message("a", b"x" * size)] * 10)
    store.close()
    if not shorter_by:
        shutil.copytree(root / "a", root / "b")
    return (str(root / "b"), str(root / "a")) if shorter_by else (str(root / "a"), str(root / "b"))


def client_of(*addresses: str, **more: Any) -> tuple[CopiesClient, list[float]]:
    waited: list[float] = []
    found = {"retries": 1, **more}
    return CopiesClient(FlightLocation(addresses[0], copies=addresses[1:], **found), wait=waited.append), waited


def lsns(client: CopiesClient, end: int, start: int = 0) -> list[int]:
    ticket = Ticket(partition=P0, start=start, end=end, columns=("lsn",))
    return [lsn for batch in client.batches(ticket) for lsn in batch.column("lsn").to_pylist()]


def test_a_server_that_is_killed_in_the_middle_is_replaced_by_another_copy(tmp_path: Path) -> None:
    """54 MB do not fit into what lies between the two when it dies."""
    first, second = (ByHand(root) for root in copies_at(tmp_path, 6, size=900_000))
    client, waited = client_of(first.address, second.address)
    batches = client.batches(Ticket(partition=P0, start=0, end=60))
    found = [next(batches)]
    first.process.kill()
    first.process.wait()
    found += batches
    assert [lsn for batch in found for lsn in batch.column("lsn").to_pylist()] == list(range(60))
    assert waited == [], "the other copy is there: nobody waits for the dead one"
    assert client.heads()[P0]["committed"] == 60
    assert second.stop() == 0
    with pytest.raises(Away):
        client.heads()


def test_what_one_copy_lacks_is_read_from_the_other(tmp_path: Path) -> None:
    shorter, longer = copies_at(tmp_path, 6, shorter_by=3)
    with served(shorter) as one, served(longer) as other:
        client, waited = client_of(one.address, other.address)
        assert client.heads()[P0]["committed"] == 60
        assert lsns(client, 60) == list(range(60))
        assert lsns(client, 20, 10) == list(range(10, 20))
        name = client.segments({P0: 60})[P0]
        assert name and client.segments({P0: 10}) == {P0: name}, "of the one that has the record"
        assert client.find_time(P0, 1 << 60) == 60 and client.end_within(P0, 0, 60, 1 << 30) == 60
        assert waited == []


def test_records_that_only_a_dead_copy_has_are_waited_for_and_not_called_lost(tmp_path: Path) -> None:
    shorter, longer = copies_at(tmp_path, 6, shorter_by=3)
    with ExitStack() as servers:
        one = servers.enter_context(served(shorter))
        with served(longer) as first:
            port = first.port
        waited: list[float] = []

        def wait(seconds: float) -> None:
            waited.append(seconds)
            servers.enter_context(served(longer, port=port))

        where = FlightLocation(one.address, copies=(first.address,), retries=1)
        assert lsns(CopiesClient(where, wait=wait), 60) == list(range(60))
        assert len(waited) == 1


def test_records_that_no_copy_has_are_lost(tmp_path: Path) -> None:
    """Damaged on every one of them; one sound copy is enough."""
    roots = copies_at(tmp_path, 6, size=9_000)
    for root in roots:
        (segment,) = Path(root, P0).glob("*.seg")
        raw = bytearray(segment.read_bytes())
        raw[100_000:120_000] = bytes(20_000)
        for index in Path(root, P0).glob("*.idx"):
            index.unlink()
        sound = segment.read_bytes()
        segment.write_bytes(raw)
    with served(roots[0]) as one, served(roots[1]) as other:
        client, _ = client_of(one.address, other.address)
        with pytest.raises(DataLoss):
            lsns(client, 60)
        segment.write_bytes(sound)
    with served(roots[0]) as one, served(roots[1]) as other:
        assert lsns(client_of(one.address, other.address)[0], 60) == list(range(60))


def test_a_partition_whose_copies_are_all_away_is_not_left_out(tmp_path: Path) -> None:
    """A query would miss its records without a word."""
    store = store_at(str(tmp_path / "a"), partitions=2)
    for partition in store.own:
        Publisher(partition).chunk([message("a", b"x")] * 10)
    store.close()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / "main" / "g1" / "p0")
    with served(str(tmp_path / "b")) as one:
        with served(str(tmp_path / "a")) as other:
            client, waited = client_of(one.address, other.address)
            assert list(client.heads()) == [P0, "main/g1/p1"]
        with pytest.raises(Away, match="no copy that answers has partition main/g1/p0"):
            client.heads()
        assert waited == [1.0] * 1


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("grpc://h", ("grpc://h:8815",)),
        ("grpc://a:1, grpc://b:2,grpc://a:1", ("grpc://a:1", "grpc://b:2")),
        ("grpc://a,grpc+tls://b", None),
        ("grpc://a,", None),
        ("grpc://a,mqtt://b", None),
    ],
)
def test_addresses_have_commas_between_them(text: str, addresses: tuple[str, ...] | None) -> None:
    assert maybe_addresses(text) == addresses


def test_the_option_names_each_server() -> None:
    found = maybe_flight_location({"broker": "grpc://a:1,grpc://b"})
    assert found is not None and found.addresses == ("grpc://a:1", "grpc://b:8815")
    with pytest.raises(BadOption, match="with commas between them"):
        maybe_flight_location({"broker": "grpc://a:1;grpc://b"})
