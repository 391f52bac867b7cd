"""The log of a broker on another machine: partitions as they are told over Flight, and ranges read from there.

Each process that asks has a client of its own, made when it first asks: Spark forks its workers, and gRPC must not be
there when it does."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rumq.flight.where import Where
from rumq.spark.options import Options

if TYPE_CHECKING:
    import pyarrow as pa

    from rumq.flight.client import LogClient


@dataclass(frozen=True)
class RemoteView:
    """A partition as its server told of it, with what `rumq.spark.plan` asks of a view."""

    where: Where
    name: str
    first_lsn: int
    end_lsn: int

    def find_time(self, ts_us: int) -> int:
        return min(max(client_of(self.where).find_time(self.name, ts_us), self.first_lsn), self.end_lsn)

    def end_within(self, from_lsn: int, to_lsn: int, bytes_max: int) -> int:
        return client_of(self.where).end_within(self.name, from_lsn, to_lsn, bytes_max)


def remote_views(where: Where) -> dict[str, RemoteView]:
    """By name, in the order in which the server has them. raises: as `LogClient.heads`"""
    heads = client_of(where).heads()
    return {name: RemoteView(where, name, head["first"], head["committed"]) for name, head in heads.items()}


def remote_batches(
    options: Options, partition: str, start: int, end: int, names: Sequence[str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """A range as `rumq.spark.scan.scan` gives it from files. names: of the columns, in the order of the schema"""
    from rumq.flight.tickets import Ticket

    assert options.where is not None
    # An expression is applied here: on the server somebody's could hold up everybody.
    expression = None if options.pattern is None else re.compile(options.pattern)
    hidden = ("topic",) if expression is not None and "topic" not in names else ()
    ticket = Ticket(
        partition=partition, start=start, end=end, columns=(*names, *hidden), topics=options.filters,
        properties="map" if options.properties == "map" else "array", failOnDataLoss=options.fail_on_data_loss,
    )  # fmt: skip
    for batch in client_of(options.where).batches(ticket):
        wanted = batch if expression is None else matching(batch, expression)
        if wanted.num_rows:
            yield fitted(wanted, schema)


def matching(batch: pa.RecordBatch, expression: re.Pattern[str]) -> Any:
    import pyarrow as pa

    topics = batch.column("topic").dictionary_encode()
    fits = pa.array([expression.fullmatch(topic) is not None for topic in topics.dictionary.to_pylist()])
    return batch.filter(fits.take(topics.indices))


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> Any:
    """The same rows as Spark names their types: inner fields have other names there, nothing is copied."""
    import pyarrow as pa

    arrays = [batch.column(name).cast(schema.field(name).type) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def client_of(where: Where) -> LogClient:
    """One for each process and place, kept: a worker has many tasks."""
    from rumq.flight.client import LogClient

    key = os.getpid(), where
    if key not in _clients:
        _clients[key] = LogClient(where)
    return _clients[key]


_clients: dict[tuple[int, Where], LogClient] = {}
