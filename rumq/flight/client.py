"""A client of the Flight service: heads, times, and batches that continue after a lost connection.

gRPC does not survive a fork: import this module only in the process that uses it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Event, Semaphore, Thread
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.flight as fl

from rumq.flight.client_credentials import header_of, tls_of
from rumq.flight.connection_faults import why_away
from rumq.flight.errors import Away, BadRequest, Failed, NotAllowed, TooManyReads, maybe_fault
from rumq.flight.retries import Retries
from rumq.flight.tickets import Ticket
from rumq.table.flight_location import FlightLocation

AHEAD = 2  # batches that are fetched while one is used
T = TypeVar("T")


class LogClient:
    """Connects at its first use, and again after a lost connection."""

    def __init__(
        self, location: FlightLocation, *, wait: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic, known: bool = False,
    ) -> None:  # fmt: skip
        """known: another process had an answer from this server, so wait through an outage"""
        self._location = location
        self._client: fl.FlightClient | None = None
        self._retries = Retries(location, wait, now, known=known)

    def heads(self) -> dict[str, dict[str, int]]:
        """As `rumq.flight.serving.served_log.Log.heads`."""
        found: dict[str, dict[str, int]] = self._action("heads")
        return found

    def find_time(self, partition: str, ts_us: int, *, behind_lost: bool = False) -> int:
        return int(self._action("find_time", partition=partition, ts_us=ts_us, behind_lost=behind_lost)["lsn"])

    def end_within(self, partition: str, start: int, end: int, bytes_max: int) -> int:
        return int(self._action("end_within", partition=partition, start=start, end=end, bytes_max=bytes_max)["lsn"])

    def segments(self, below: dict[str, int]) -> dict[str, str]:
        """By partition, the segment of the last record below an lsn; empty for an older server."""
        try:
            found: dict[str, str] = self._action("segments", below=below)
        except BadRequest:
            return {}
        return found

    def batches(self, ticket: Ticket) -> Iterator[pa.RecordBatch]:
        """The rows of a ticket, in order, each once.

        raises: the server's error (rumq.flight.errors, DataLoss), Away after the last retry
        """
        left = self._retries.first
        while True:
            try:
                for batch, next_lsn in self.received(ticket):
                    yield batch
                    ticket, left = msgspec.structs.replace(ticket, start=next_lsn), self._retries.first
                    self._retries.note_answer()
                self._retries.note_answer()
                return
            except (Away, TooManyReads) as fault:
                self._before_retry(left, fault)
                left -= 1

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _action(self, name: str, **arguments: object) -> Any:
        action = fl.Action(name, json.dumps(arguments).encode())
        return self._with_retries(lambda: self._call(action))

    def _call(self, action: fl.Action) -> Any:
        with translated(self._location.address):
            options = self._options(timeout=self._location.read_seconds_max)
            return json.loads(next(iter(self._connected().do_action(action, options))).body.to_pybytes())

    def _with_retries(self, call: Callable[[], T]) -> T:
        left = self._retries.first
        while True:
            try:
                found = call()
                self._retries.note_answer()
                return found
            except (Away, TooManyReads) as fault:
                self._before_retry(left, fault)
                left -= 1

    def _before_retry(self, left: int, fault: Away | TooManyReads) -> None:
        """Wait, or raise the fault."""
        self.close()
        self._retries.before_retry(left, fault)

    def received(self, ticket: Ticket) -> Iterator[tuple[pa.RecordBatch, int]]:
        """As `batches`, without retries; each batch with the lsn to resume from."""
        with translated(self._location.address):
            reader = self._connected().do_get(fl.Ticket(ticket.to_bytes()), self._options())
            for chunk in prefetched(reader, self._location.read_seconds_max):
                yield chunk.data, int(json.loads(chunk.app_metadata.to_pybytes())["next"])

    def _connected(self) -> fl.FlightClient:
        if self._client is None:
            self._client = fl.connect(self._location.address, **tls_of(self._location))
        return self._client

    def _options(self, timeout: float | None = None) -> fl.FlightCallOptions:
        header = header_of(self._location)
        headers = [] if header is None else [(b"authorization", header.encode())]
        return fl.FlightCallOptions(timeout=timeout, headers=headers)


@contextmanager
def translated(address: str) -> Iterator[None]:
    """Flight's error as ours."""
    try:
        yield
    except TimeoutError as fault:
        raise Away(address, str(fault)) from None
    except (fl.FlightError, pa.ArrowException, OSError) as fault:
        known = maybe_fault(getattr(fault, "extra_info", None) or b"")
        if known is not None:
            raise known from None
        text = str(fault)
        if isinstance(fault, fl.FlightUnauthenticatedError | fl.FlightUnauthorizedError):
            raise NotAllowed(text, known=False) from None
        if isinstance(fault, LOST) or "ocket closed" in text:
            raise Away(address, why_away(text)) from None
        raise Failed(text) from None


LOST = (fl.FlightUnavailableError, fl.FlightTimedOutError, fl.FlightCancelledError, fl.FlightInternalError)


def prefetched(reader: fl.FlightStreamReader, seconds_max: float) -> Iterator[fl.FlightStreamChunk]:
    """The chunks of a stream, prefetched. raises: TimeoutError if one takes longer"""
    ready: SimpleQueue[fl.FlightStreamChunk | Exception | None] = SimpleQueue()
    slots, stopped = Semaphore(AHEAD), Event()

    def fetch() -> None:
        try:
            while slots.acquire() and not stopped.is_set():
                ready.put(reader.read_chunk())
        except StopIteration:
            ready.put(None)
        except Exception as fault:  # raised where the chunks are used
            ready.put(fault)

    thread = Thread(target=fetch, name="rumq-flight", daemon=True)
    thread.start()
    try:
        while True:
            try:
                found = ready.get(timeout=seconds_max)
            except Empty:
                raise TimeoutError(f"no answer in {seconds_max:g} s (readTimeoutMs)") from None
            if found is None:
                return
            if isinstance(found, Exception):
                raise found
            slots.release()
            yield found
    finally:
        stopped.set()
        slots.release()
        reader.cancel()
        thread.join()
