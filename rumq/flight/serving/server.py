"""The Flight service: calls arrive on threads of gRPC, `CallAuthorization` identifies the caller, `ServedLog` reads.
docs/guides/spark.md.

Faults are sent as typed errors with JSON beside the message (rumq.flight.errors), never as a traceback, which Flight
would send with paths and lines. (`get_schema` is not served because pyarrow always sends one there; the answer of
`get_flight_info` has the schema.)"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.flight as fl

from rumq.auth.errors import SERVER_BUSY, Denied
from rumq.errors import RumqError
from rumq.flight.errors import NAMES, BadRequest, Failed, NotAllowed, TooManyReads, to_wire
from rumq.flight.schema import schema_of
from rumq.flight.serving.call_authorization import HEADER, CallAuthorization, FlightCaller
from rumq.flight.serving.login_turns import source_of
from rumq.flight.serving.read_slots import READS_MAX, ReadSlots
from rumq.flight.serving.served_log import ServedLog, check_permission
from rumq.flight.tickets import EndWithin, FindTime, ReadCommand, SegmentsBelow, decoded, parse_ticket

ACTIONS = {
    "heads": "of each partition its first lsn, committed, generation and last_ts; no body",
    "find_time": 'the first lsn at or after a time: {"partition", "ts_us"}, or after lost records, "behind_lost"',
    "segments": 'by partition, which segment has the last record below an lsn: {"below": {"main/g1/p0": 100}}',
    "end_within": 'how far so many bytes go: {"partition", "start", "end", "bytes_max"}',
}
Event = Callable[..., None]


class AuthorizationHeader(fl.ServerMiddleware):  # type: ignore[misc]
    """The authorization header of a call; of a handshake also the answer."""

    def __init__(self, header: str | None, answer: str | None) -> None:
        self.header, self._answer = header, answer

    def sending_headers(self) -> dict[str, str]:
        return {} if self._answer is None else {HEADER: self._answer}


class AuthorizationHeaders(fl.ServerMiddlewareFactory):  # type: ignore[misc]
    """Receives the header of every call; answers handshakes, whose headers are visible only here."""

    def __init__(self, authorization: CallAuthorization, event: Event) -> None:
        self._authorization, self._event = authorization, event

    def start_call(self, info: fl.CallInfo, headers: dict[str, list[str]]) -> AuthorizationHeader:
        found = headers.get(HEADER)
        header = found[0] if found else None
        if info.method != fl.FlightMethod.HANDSHAKE:
            return AuthorizationHeader(header, None)
        try:
            return AuthorizationHeader(header, self._authorization.handshake(header))
        except Denied as denied:
            raise as_flight(refused(denied, "", self._authorization, self._event)) from None


class LoginHandshake(fl.ServerAuthHandler):  # type: ignore[misc]
    """Flight requires one for handshakes; headers decide."""

    def authenticate(self, outgoing: fl.ServerAuthSender, incoming: fl.ServerAuthReader) -> None:
        pass

    def is_valid(self, token: bytes) -> bytes:
        return b""


class LogServer(fl.FlightServerBase):  # type: ignore[misc]
    """Serves from its construction until `close`."""

    def __init__(
        self, location: str, log: ServedLog, authorization: CallAuthorization, *, event: Event,
        certificates: list[tuple[bytes, bytes]] | None = None, authority: bytes | None = None,
        reads: ReadSlots | None = None,
    ) -> None:  # fmt: skip
        """location: grpc://host:port or grpc+tls://, port 0 for any free one (see `port`)
        certificates: (chain, key), PEM; authority: of clients' certificates, PEM: each must present one
        reads: bounds of reads that it shares with another server

        raises: OSError, pa.ArrowException if it cannot listen
        """
        self._log, self._authorization, self._event = log, authorization, event
        self._reads = reads or ReadSlots(READS_MAX, now=time.monotonic)
        self._closing = False
        self._ending: threading.Thread | None = None
        super().__init__(
            location, auth_handler=LoginHandshake(), middleware={"shown": AuthorizationHeaders(authorization, event)},
            tls_certificates=certificates, verify_client=authority is not None, root_certificates=authority,
        )  # fmt: skip

    def close(self, seconds_max: float) -> bool:
        """End running reads with a retryable error; False if some are still running after this time."""
        self._closing = True
        ending = self._shut_down()
        ending.join(seconds_max)
        return not ending.is_alive()

    def retire(self, seconds_max: float) -> None:
        """Accept nothing more; running calls go on, and end with a retryable error after this time. Does not wait."""
        ending = self._shut_down()

        def bound() -> None:
            ending.join(seconds_max)
            self._closing = True

        threading.Thread(target=bound, daemon=True).start()

    def again(
        self, location: str, *, certificates: list[tuple[bytes, bytes]] | None = None, authority: bytes | None = None
    ) -> LogServer:
        """Another server with what this one has, bounds of reads among it. raises: OSError, pa.ArrowException"""
        return LogServer(
            location, self._log, self._authorization, event=self._event,
            certificates=certificates, authority=authority, reads=self._reads,
        )  # fmt: skip

    @property
    def is_serving(self) -> bool:
        """Some of its calls are still running."""
        return self._ending is None or self._ending.is_alive()

    def _shut_down(self) -> threading.Thread:
        """It listens no more from a moment later on; the thread ends with the last call."""
        if self._ending is None:
            self._ending = threading.Thread(target=self.shutdown, daemon=True)
            self._ending.start()
        return self._ending

    # Called by Flight

    def list_flights(self, context: fl.ServerCallContext, criteria: bytes) -> Iterator[fl.FlightInfo]:
        with self._authorized(context):
            found = []
            for name, head in self._log.heads().items():
                command = self._log.command(json.dumps({"assign": [name]}).encode(), now_us())
                found.append(self._info(partition_descriptor(name), command, head["committed"] - head["first"]))
        return iter(found)

    def get_flight_info(self, context: fl.ServerCallContext, descriptor: fl.FlightDescriptor) -> fl.FlightInfo:
        with self._authorized(context) as caller:
            command = self._log.command(asked(descriptor), now_us())
            check_permission(command, caller)
            return self._info(descriptor, command)

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.FlightDataStream:
        with self._authorized(context) as caller:
            parsed = parse_ticket(ticket.ticket)
            batches = self._log.batches(parsed, caller)
            schema = schema_of(parsed.columns, parsed.properties)
        peer = peer_of(context)
        holder = f"user {caller.user}" if caller.user is not None else source_of(peer)
        return fl.GeneratorStream(schema, self._read(context, peer, holder, batches))

    def list_actions(self, context: fl.ServerCallContext) -> list[tuple[str, str]]:
        return list(ACTIONS.items())

    def do_action(self, context: fl.ServerCallContext, action: fl.Action) -> Iterator[fl.Result]:
        with self._authorized(context):
            answer = self._answer(action.type, action.body.to_pybytes())
        yield fl.Result(json.dumps(answer).encode())

    # Answers

    def _answer(self, name: str, body: bytes) -> object:
        match name:
            case "heads":
                return self._log.heads()
            case "find_time":
                return {"lsn": self._log.find_time(decoded("action", body, FindTime))}
            case "segments":
                return self._log.segments(decoded("action", body, SegmentsBelow))
            case "end_within":
                return {"lsn": self._log.end_within(decoded("action", body, EndWithin))}
        raise BadRequest("action", f"there is no {name!r}; there are {', '.join(ACTIONS)}")

    def _info(self, descriptor: fl.FlightDescriptor, command: ReadCommand, records: int = -1) -> fl.FlightInfo:
        """Endpoints without a location: tickets are valid on this server."""
        endpoints = [fl.FlightEndpoint(ticket.to_bytes(), []) for ticket in self._log.tickets(command)]
        return fl.FlightInfo(schema_of(command.columns, command.properties), descriptor, endpoints, records, -1)

    def _read(
        self,
        context: fl.ServerCallContext,
        peer: str,
        holder: str,
        batches: Iterator[tuple[pa.RecordBatch, int]],
    ) -> Iterator[tuple[pa.RecordBatch, bytes]]:
        """Batches, each with the lsn to resume from after a lost connection."""
        with self._translated_errors(peer):
            read = self._reads.acquire(holder)
            try:
                for batch, next_lsn in batches:
                    self._reads.batch_offered(read)
                    if self._closing:
                        raise TooManyReads("the server stops")
                    if context.is_cancelled():
                        return
                    yield batch, b'{"next":%d}' % next_lsn
                    self._reads.batch_taken(read)
            finally:
                self._reads.release(read)

    @contextmanager
    def _authorized(self, context: fl.ServerCallContext) -> Iterator[FlightCaller]:
        """Authorize the caller, and convert faults to Flight's errors."""
        peer = peer_of(context)
        with self._translated_errors(peer):
            try:
                caller = self._authorization.authorize(context.get_middleware("shown").header, peer)
            except Denied as denied:
                raise refused(denied, peer, self._authorization, self._event) from None
            yield caller

    @contextmanager
    def _translated_errors(self, peer: str) -> Iterator[None]:
        try:
            yield
        except RumqError as fault:
            if type(fault) not in NAMES:
                raise as_flight(Failed(str(fault))) from None
            raise as_flight(fault) from None
        except OSError as fault:
            self._event("flight.failed", peer=peer, why=str(fault))
            raise as_flight(Failed(f"the log cannot be read: {fault.strerror or fault}")) from None
        except Exception as fault:  # our bug: gRPC's threads have no other place to report it
            self._event("flight.failed", peer=peer, why=type(fault).__name__, exc_info=True)
            raise as_flight(Failed("a bug, see its events")) from None


def refused(denied: Denied, peer: str, authorization: CallAuthorization, event: Event) -> NotAllowed:
    """The answer; also an event, except for unauthenticated calls, whose rate is unbounded."""
    if denied.reason != SERVER_BUSY:
        event("flight.refused", peer=peer, why=denied.why)
    return NotAllowed(authorization.refusal_text(denied), known=False)


def as_flight(fault: RumqError) -> Exception:
    kind: type[Exception] = fl.FlightServerError
    if isinstance(fault, NotAllowed):
        kind = fl.FlightUnauthorizedError if fault.known else fl.FlightUnauthenticatedError
    elif isinstance(fault, TooManyReads):
        kind = fl.FlightUnavailableError
    elif isinstance(fault, Failed):
        kind = fl.FlightInternalError
    return kind(str(fault), to_wire(fault))


def asked(descriptor: fl.FlightDescriptor) -> bytes:
    """The command of a descriptor; a path names a partition. raises: BadRequest"""
    if descriptor.descriptor_type == fl.DescriptorType.CMD:
        return bytes(descriptor.command)
    if descriptor.descriptor_type == fl.DescriptorType.PATH:
        return json.dumps({"assign": ["/".join(part.decode(errors="replace") for part in descriptor.path)]}).encode()
    raise BadRequest("command", "expected a descriptor with a command or a path")


def partition_descriptor(name: str) -> fl.FlightDescriptor:
    return fl.FlightDescriptor.for_path(*name.split("/"))


def peer_of(context: fl.ServerCallContext) -> str:
    """The caller's address without port, from ipv4:127.0.0.1:46662 or ipv6:%5B::1%5D:46662."""
    kind, _, rest = context.peer().partition(":")
    host = rest.rpartition(":")[0] if kind in ("ipv4", "ipv6") else rest
    return str(host.replace("%5B", "").replace("%5D", "").strip("[]"))


def now_us() -> int:
    return time.time_ns() // 1000
