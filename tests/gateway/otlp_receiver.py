"""An OTLP endpoint of a test: decodes what comes with opentelemetry-proto; it can be slow, or refuse."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SECONDS_MAX = 60.0
KINDS = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}


class Told(NamedTuple):
    """A span as it came. links: (trace id, span id); state: tracestate"""

    name: str
    trace: str
    span: str
    parent: str
    kind: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    links: list[tuple[str, str]]
    state: str


class OtlpReceiver:
    """headers: of each request; service: of the last one; status: what is answered; held: while set, nothing is"""

    def __init__(self) -> None:
        self.spans: list[Told] = []
        self.headers: list[dict[str, str]] = []
        self.service = ""
        self.status = 200
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._came = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.take(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                outer.may_answer.wait(SECONDS_MAX)
                self.send_response(outer.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        assert path == "/v1/traces" and headers["content-type"] == "application/x-protobuf"
        request = ExportTraceServiceRequest.FromString(body)
        with self._came:
            self.headers.append(headers)
            if self.status == 200:
                for part in request.resource_spans:
                    self.service = values(part.resource.attributes)["service.name"]
                    for scope in part.scope_spans:
                        self.spans += [told(span) for span in scope.spans]
            self._came.notify_all()

    def wait(self, done: Callable[[list[Told]], bool]) -> list[Told]:
        """The spans, once they are as wanted."""
        with self._came:
            assert self._came.wait_for(lambda: done(self.spans), SECONDS_MAX), self.spans
            return list(self.spans)

    def wait_requests(self, count: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.headers) >= count, SECONDS_MAX)

    def trace(self, trace_id: str, *names: str) -> list[Told]:
        """Spans of a trace, once it has these, each as often as it is named."""

        def has_all(spans: list[Told]) -> bool:
            found = [span.name for span in spans if span.trace == trace_id]
            return all(found.count(name) >= names.count(name) for name in names)

        return [span for span in self.wait(has_all) if span.trace == trace_id]

    def close(self) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()


def told(span: Any) -> Told:
    return Told(
        span.name, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), KINDS[span.kind],
        span.start_time_unix_nano, span.end_time_unix_nano, values(span.attributes),
        [(each.trace_id.hex(), each.span_id.hex()) for each in span.links], span.trace_state,
    )  # fmt: skip


def values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
