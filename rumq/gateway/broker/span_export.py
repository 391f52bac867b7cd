"""Sends the spans of traced messages to an OTLP endpoint: takes them from the shards, keeps a bounded number of them.

An endpoint that is slow or away costs spans, which are counted, and nothing else: the SDK's exporter waits and tries
again in a thread. The SDK is imported once there is an endpoint. docs/reference/tracing.md"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import trio

from rumq.admin import requests as q
from rumq.admin.answers import Spans
from rumq.admin.operations import OPERATIONS, Raw, question_of
from rumq.errors import RumqError
from rumq.settings.table.trace import Trace
from rumq.tracing.spans import Span

QUEUE_MAX = 8192  # spans that wait for the endpoint; the oldest make room
BATCH_MAX = 512
POLL_SECONDS = 0.5
IDLE_SECONDS = 5.0  # while tracing is off
SEND_SECONDS_MAX = 10.0  # of a batch, with the attempts of the SDK


@dataclass(slots=True)
class SpanCounts:
    """exported: that the endpoint has taken; lost: that it has not"""

    exported: int = 0
    lost: int = 0


class SpanSource(Protocol):
    """`rumq.gateway.broker.shard_client.ShardClient`; count: of shards"""

    count: int

    async def ask_one(self, index: int, question: bytes) -> Raw: ...


class SpanEndpoint(Protocol):
    """Takes spans; for a thread."""

    def send(self, spans: Sequence[Span]) -> bool:
        """Whether they were taken."""

    def close(self) -> None: ...


class OtlpEndpoint:
    """The SDK's exporter of OTLP over HTTP."""

    def __init__(self, settings: Trace, headers: dict[str, str]) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        from rumq.gateway.broker.otlp_spans import resource

        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # what fails is an event of ours
        self._exporter = OTLPSpanExporter(
            endpoint=settings.otlp_endpoint.rstrip("/") + "/v1/traces",
            headers=headers,
            timeout=SEND_SECONDS_MAX,
        )
        self._about = resource(settings.service_name)

    def send(self, spans: Sequence[Span]) -> bool:
        from opentelemetry.sdk.trace.export import SpanExportResult

        from rumq.gateway.broker.otlp_spans import as_sdk

        return self._exporter.export([as_sdk(span, self._about) for span in spans]) is SpanExportResult.SUCCESS

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


class SpanExporter:
    """event: reports trace.export_failed and trace.export_resumed; made: an endpoint from settings and headers"""

    def __init__(
        self, shards: SpanSource, counts: SpanCounts, event: Callable[..., None],
        made: Callable[[Trace, dict[str, str]], SpanEndpoint] = OtlpEndpoint,
    ) -> None:  # fmt: skip
        self._shards, self._counts, self._event, self._made = shards, counts, event, made
        self._settings, self._headers = Trace(), dict[str, str]()
        self._endpoint: SpanEndpoint | None = None
        self._cursors: dict[int, int] = {}
        self._queue: deque[Span] = deque()
        self._changed = trio.Event()  # something to send, or other settings
        self._fails = False

    def configure(self, settings: Trace, headers: dict[str, str]) -> None:
        """Send from now on to this endpoint; none: what waits is lost."""
        same = (settings.otlp_endpoint, settings.service_name, headers) == (
            self._settings.otlp_endpoint, self._settings.service_name, self._headers,
        )  # fmt: skip
        self._settings, self._headers = settings, headers
        if same:
            return
        old, self._endpoint = self._endpoint, None
        if old is not None:
            old.close()
        if settings.otlp_endpoint:
            self._endpoint = self._made(settings, headers)
        self._wake()

    async def run(self) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._take)
            nursery.start_soon(self._send)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _take(self) -> None:
        while True:
            is_on = more = False
            for index in range(self._shards.count) if self._endpoint is not None else ():
                page = await self._page(index)
                if page is not None:
                    is_on |= page[0]
                    more |= page[1]
            if not more:
                await trio.sleep(POLL_SECONDS if is_on else IDLE_SECONDS)

    async def _page(self, index: int) -> tuple[bool, bool] | None:
        """Whether a shard traces, and whether it has more spans; None while it does not answer."""
        operation, limit = OPERATIONS["spans"], BATCH_MAX
        asked = q.Spans(after=f"{index}:{self._cursors.get(index, 0)}", limit=limit)
        try:
            raw = await self._shards.ask_one(index, msgspec.json.encode(question_of(operation, asked)) + b"\n")
            page = msgspec.convert(raw, Spans).shards[0]
        except (RumqError, ValueError):
            return None
        self._cursors[index] = page.next
        self._counts.lost += page.lost
        self._queue.extend(page.spans)
        while len(self._queue) > QUEUE_MAX:
            self._queue.popleft()
            self._counts.lost += 1
        if page.spans:
            self._wake()
        return page.sample_every > 0, len(page.spans) == limit

    async def _send(self) -> None:
        while True:
            endpoint = self._endpoint
            if endpoint is None or not self._queue:
                if endpoint is None:
                    self._counts.lost += len(self._queue)
                    self._queue.clear()
                await self._changed.wait()
                continue
            batch = [self._queue.popleft() for _ in range(min(BATCH_MAX, len(self._queue)))]
            try:
                taken = await trio.to_thread.run_sync(endpoint.send, batch, abandon_on_cancel=True)
                why = "it did not take them"
            except Exception as fault:  # of the SDK, whatever it is
                taken, why = False, f"{type(fault).__name__}: {fault}"
            self._sent(len(batch), taken, why)

    def _sent(self, count: int, taken: bool, why: str) -> None:
        if taken:
            self._counts.exported += count
            if self._fails:
                self._event("trace.export_resumed", endpoint=self._settings.otlp_endpoint, lost=self._counts.lost)
        else:
            self._counts.lost += count
            if not self._fails:
                self._event("trace.export_failed", endpoint=self._settings.otlp_endpoint, why=why, spans=count)
        self._fails = not taken
