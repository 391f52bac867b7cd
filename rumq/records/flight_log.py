"""The log of a broker on another machine: partitions and ranges over Flight.

Each process has a client of its own, created at its first call: Spark forks its workers, and gRPC must not be started
before a fork."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rumq.table.flight_location import FlightLocation
from rumq.table.lake_fallback import within_times
from rumq.table.options import TableOptions
from rumq.table.pushed_filters import PushedFilters
from rumq.table.scan import topic_matcher

if TYPE_CHECKING:
    import pyarrow as pa

    from rumq.flight.client import LogClient
    from rumq.flight.copies_client import CopiesClient


@dataclass(frozen=True)
class FlightPartition:
    """A partition as its server reported it, with the view interface that `rumq.table.plan` uses."""

    location: FlightLocation
    name: str
    first_lsn: int
    end_lsn: int

    def find_time(self, ts_us: int, *, behind_lost: bool = False) -> int:
        found = flight_client(self.location).find_time(self.name, ts_us, behind_lost=behind_lost)
        return min(max(found, self.first_lsn), self.end_lsn)

    def segment_of(self, lsn: int) -> str:
        return flight_client(self.location).segments({self.name: lsn + 1}).get(self.name, "")

    def end_within(self, from_lsn: int, to_lsn: int, bytes_max: int) -> int:
        return flight_client(self.location).end_within(self.name, from_lsn, to_lsn, bytes_max)


def remote_partitions(location: FlightLocation) -> dict[str, FlightPartition]:
    """By name, in the server's order. raises: as `LogClient.heads`"""
    heads = flight_client(location).heads()
    return {name: FlightPartition(location, name, head["first"], head["committed"]) for name, head in heads.items()}


def remote_batches(
    options: TableOptions, partition: str, start: int, end: int, schema: pa.Schema, pushed_filters: PushedFilters
) -> Iterator[pa.RecordBatch]:
    """A range, as `rumq.table.scan.scan` returns it from files."""
    from rumq.flight.tickets import Ticket

    names = schema.names

    assert options.flight_location is not None
    # The regular expression is applied here: on the server a slow one could block all clients.
    wants = (
        None
        if options.pattern is None and not pushed_filters.topics
        else pushed_filters.wants(topic_matcher((), options.pattern))
    )
    filters = pushed_filters.filters(options.filters, topic_matcher(options.filters, options.pattern))
    if filters is None:
        return
    hidden = {"topic"} if wants is not None else set()
    if pushed_filters.times is not None:
        hidden |= {"ts"}
    ticket = Ticket(
        partition=partition, start=start, end=end, columns=(*names, *sorted(hidden - set(names))), topics=filters,
        properties="map" if options.properties == "map" else "array", failOnDataLoss=options.fail_on_data_loss,
    )  # fmt: skip
    # The planner had an answer from this server.
    for batch in flight_client(options.flight_location, known=True).batches(ticket):
        wanted = batch if wants is None else matching(batch, wants)
        if pushed_filters.times is not None:
            wanted = within_times(wanted, pushed_filters.times)
        if wanted.num_rows:
            yield fitted(wanted, schema)


def matching(batch: pa.RecordBatch, wants: Callable[[str], bool]) -> pa.RecordBatch:
    import pyarrow as pa

    topics = batch.column("topic").dictionary_encode()
    fits = pa.array([wants(topic) for topic in topics.dictionary.to_pylist()], pa.bool_())
    return batch.filter(fits.take(topics.indices))


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows with the schema's names for inner fields (Spark has its own), without a copy."""
    import pyarrow as pa

    arrays = [batch.column(name).cast(schema.field(name).type) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def flight_client(location: FlightLocation, *, known: bool = False) -> LogClient | CopiesClient:
    """One client per process and location, cached: a worker has many tasks. known: see `LogClient`"""
    from rumq.flight.client import LogClient
    from rumq.flight.copies_client import CopiesClient

    key = os.getpid(), location
    if key not in _clients:
        made = CopiesClient if location.copies else LogClient
        _clients[key] = made(location, known=known)
    return _clients[key]


_clients: dict[tuple[int, FlightLocation], LogClient | CopiesClient] = {}
