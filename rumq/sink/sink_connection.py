"""A connection that publishes rows to any MQTT 5 broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from uuid import uuid4
from warnings import warn

import numpy as np
import pyarrow as pa
import trio

from rumq.client.session.packet_stream import failure_text
from rumq.errors import ConnectionLost, Refused, RumqError
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode as encode_packet
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Connack, Connect
from rumq.mqtt.properties import Properties
from rumq.sink.at_least_once import AtLeastOnce
from rumq.sink.broker_check import open_to
from rumq.sink.exactly_once import ExactlyOnce
from rumq.sink.progress_marker import ProgressMarker
from rumq.sink.publish_encoder import FRAME_BYTES_MAX, PublishEncoder, check_sizes, encode
from rumq.sink.sink_options import SinkOptions
from rumq.sink.sink_protocol import SinkProtocol, Wait

CONNECT_SECONDS_MAX = 10.0
ANSWER_SECONDS_MAX = 60.0
RECEIVE_BYTES_MAX = 2**18
BATCH_BYTES_MAX = 2**26  # rows of Arrow that are encoded at once

OpenStream = Callable[[], Awaitable[trio.abc.Stream]]


@dataclass(frozen=True)
class SinkPartition:
    """One partition of one batch: the same for every attempt at its rows.

    query: the query's id, or one of a batch write; marker_seconds: expiry of its markers, 0 for none
    """

    query: str
    batch: int
    partition: int
    marker_seconds: int = 0

    def origin(self) -> str:
        return f"{self.query}/{self.batch}/{self.partition}/"

    def client_id(self, options: SinkOptions) -> str:
        return f"{options.client_id or f'rumq-spark-{self.query}'}-{self.partition}"

    def state_topic(self, options: SinkOptions) -> str:
        return f"{options.state_topic or f'rumq/spark/{self.query}'}/{self.partition}"


def frames_of(
    batches: Iterable[pa.RecordBatch], options: SinkOptions, partition: SinkPartition
) -> Iterator[PublishEncoder]:
    """Rows as packets, batch by batch. raises: BadRow"""
    row = 0
    for batch in batches:
        parts = max(1, -(-batch.nbytes // BATCH_BYTES_MAX))
        step = max(1, -(-batch.num_rows // parts))
        for at in range(0, batch.num_rows, step):
            part = batch.slice(at, step)
            origin = partition.origin() if options.origin else None
            yield encode(
                part,
                topic=options.topic,
                qos=options.qos,
                retain=options.retain,
                origin=origin,
                first_row=row,
            )
            row += part.num_rows


def publish_all(
    batches: Iterable[pa.RecordBatch],
    options: SinkOptions,
    partition: SinkPartition,
    open_stream: OpenStream | None = None,
) -> int:
    """Publish every row in order; returns their number once the broker has acknowledged all.

    raises: Refused, ConnectionLost, BadRow; with options.once BrokerCannot, BadProgressMarker, BatchSuperseded, Doubt,
    RowsChanged
    """
    frames = frames_of(batches, options, partition)
    if (first := next(frames, None)) is None:
        return 0
    rows = chain((first,), frames)
    return trio.run(partial(_publish, rows, options, partition, open_stream or partial(open_to, options)))


async def _publish(
    rows: Iterator[PublishEncoder], options: SinkOptions, partition: SinkPartition, open_stream: OpenStream
) -> int:
    if not options.once:
        async with connected(open_stream, options, options.client_id) as (stream, connack, rest):
            publisher: SinkProtocol = AtLeastOnce(connack.properties.get("receive_maximum", 65_535))
            await SinkConnection(publisher, stream, connack).run(rows, rest)
            return publisher.rows
    found: ProgressMarker | None = None
    for clean_session in (False, True):
        async with connected(open_stream, options, partition.client_id(options), clean_session=clean_session) as (
            stream,
            connack,
            rest,
        ):
            once = ExactlyOnce(
                connack, partition.batch, partition.state_topic(options), uuid4().hex,
                repeat_in_doubt=options.repeat_in_doubt, clean_session=clean_session, found=found,
                marker_seconds=partition.marker_seconds,
            )  # fmt: skip
            await SinkConnection(once, stream, connack).run(rows, rest)
        if not once.clean_start_wanted:
            break
        found = once.found
        if once.doubt is not None:
            warn(f"{once.doubt}: this is done now", stacklevel=1)
    return once.rows


@asynccontextmanager
async def connected(
    open_stream: OpenStream, options: SinkOptions, client_id: str, *, clean_session: bool = False
) -> AsyncIterator[tuple[trio.abc.Stream, Connack, bytes]]:
    """A stream after its CONNACK, the CONNACK, and bytes received after it. raises: ConnectionLost, Refused"""
    with trio.move_on_after(CONNECT_SECONDS_MAX) as limit:
        try:
            stream = await open_stream()
        except OSError as fault:
            raise ConnectionLost(failure_text(fault)) from fault
        try:
            await stream.send_all(encode_packet(connect_packet(options, client_id, clean_session=clean_session), 5))
            connack, rest = await receive_connack(stream)
        except BaseException as fault:
            await trio.aclose_forcefully(stream)
            if isinstance(fault, trio.BrokenResourceError):
                raise ConnectionLost(failure_text(fault)) from fault
            raise
    if limit.cancelled_caught:
        raise ConnectionLost(f"no answer within {CONNECT_SECONDS_MAX:g} s")
    try:
        yield stream, connack, rest
    finally:
        await trio.aclose_forcefully(stream)


def connect_packet(options: SinkOptions, client_id: str, *, clean_session: bool) -> Connect:
    password = Path(options.password_file).read_bytes().strip() if options.password_file else options.password
    properties = Properties(request_problem_information=True)
    if options.once:
        properties["session_expiry_interval"] = options.session_seconds
    # No keep-alive: between two batches Spark computes, and nothing here could send a PINGREQ.
    return Connect(client_id, 5, clean_session or not options.once, 0, options.username, password, None, properties)


async def receive_connack(stream: trio.abc.Stream) -> tuple[Connack, bytes]:
    """CONNACK, and the bytes received after it. raises: ConnectionLost, Refused"""
    data = b""
    try:
        while (found := frame_at(data, 0, len(data), version=5)) is None or sum(found) > len(data):
            chunk = await stream.receive_some(RECEIVE_BYTES_MAX)
            if not chunk:
                raise ConnectionLost("the broker closed it")
            data += chunk
        connack = decode(data[0], data[found[0] : sum(found)], 5)
    except MqttFault as fault:
        raise ConnectionLost(f"the broker's answer is no MQTT: {fault}") from fault
    if not isinstance(connack, Connack):
        raise ConnectionLost(f"the broker began with {type(connack).__name__.upper()}")
    if connack.reason.is_error:
        says = connack.properties.get("reason_string") or connack.reason.text
        raise Refused("the connection", connack.reason, says)
    return connack, data[sum(found) :]


class SinkConnection:
    """The I/O of a publisher's protocol on one stream."""

    def __init__(self, publisher: SinkProtocol, stream: trio.abc.Stream, connack: Connack) -> None:
        self._publisher, self._stream = publisher, stream
        self._frame_bytes_max = connack.properties.get("maximum_packet_size", FRAME_BYTES_MAX)
        self._arrived, self._hung_up = trio.Event(), trio.Event()
        self._end: RumqError | None = None

    async def run(self, rows: Iterator[PublishEncoder], received: bytes) -> None:
        """Run until the publisher is done and the broker has closed. received: bytes after CONNACK

        raises: see `publish_all`
        """
        fault: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._receive, received)
            try:
                await self._run(rows)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as broken:
                # The broker's last packet explains more than a closed connection.
                with trio.move_on_after(1):
                    await self._hung_up.wait()
                fault = self._end or ConnectionLost(failure_text(broken))
            except Exception as raised:
                fault = raised
            nursery.cancel_scope.cancel()
        if fault is not None:
            raise fault

    async def _run(self, rows: Iterator[PublishEncoder]) -> None:
        while True:
            self._arrived = trio.Event()
            wait = self._publisher.step()
            for chunk in self._publisher.output():
                await self._stream.send_all(chunk)
            if wait is Wait.DONE:
                break
            if self._end is not None:
                raise self._end
            if wait is Wait.ROWS:
                self._give(next(rows, None))
                await trio.lowlevel.checkpoint()
            elif not self._arrived.is_set():
                await self._answer()
        if not self._publisher.disconnect_sent:
            return
        # Closing with unread bytes would reset the connection and lose data in flight.
        with trio.move_on_after(CONNECT_SECONDS_MAX):
            await self._hung_up.wait()

    def _give(self, frames: PublishEncoder | None) -> None:
        if frames is not None:
            check_sizes(np.diff(frames.starts), self._frame_bytes_max)
        self._publisher.add_rows(frames)

    async def _answer(self) -> None:
        with trio.move_on_after(ANSWER_SECONDS_MAX) as limit:
            await self._arrived.wait()
        if limit.cancelled_caught:
            raise ConnectionLost(f"the broker answered nothing for {ANSWER_SECONDS_MAX:g} s")
        if self._end is not None:
            raise self._end

    async def _receive(self, received: bytes) -> None:
        """Pass received packets to the publisher, until the broker closes or violates the protocol."""
        chunk: bytes = received
        try:
            while True:
                self._publisher.receive(chunk)
                self._arrived.set()
                chunk = bytes(await self._stream.receive_some(RECEIVE_BYTES_MAX))
                if not chunk:
                    raise ConnectionLost("the broker closed it")
        except (trio.BrokenResourceError, trio.ClosedResourceError) as fault:
            self._end = ConnectionLost(failure_text(fault))
        except MqttFault as fault:
            self._end = ConnectionLost(f"the broker broke the protocol: {fault}")
        except RumqError as fault:
            self._end = fault
        self._hung_up.set()
        self._arrived.set()
