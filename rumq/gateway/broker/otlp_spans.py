"""Spans of the shards as spans of OpenTelemetry's SDK."""

from __future__ import annotations

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from rumq.tracing.spans import Span
from rumq.version import VERSION

SCOPE = InstrumentationScope("rumq", VERSION)
KINDS = {"server": SpanKind.SERVER, "internal": SpanKind.INTERNAL, "producer": SpanKind.PRODUCER}
SAMPLED = TraceFlags(TraceFlags.SAMPLED)


def resource(service_name: str) -> Resource:
    return Resource({"service.name": service_name, "service.version": VERSION})


def as_sdk(span: Span, about: Resource) -> ReadableSpan:
    state = TraceState.from_header([span.state]) if span.state else None
    return ReadableSpan(
        span.name,
        context=context(span.trace_id, span.span_id, state),
        parent=context(span.trace_id, span.parent_id) if span.parent_id else None,
        resource=about,
        attributes=span.attributes,
        links=[Link(context(trace_id, span_id)) for trace_id, span_id in span.links],
        kind=KINDS[span.kind],
        status=Status(StatusCode.ERROR, span.fault) if span.fault else Status(StatusCode.UNSET),
        start_time=span.start_us * 1000,
        end_time=span.end_us * 1000,
        instrumentation_scope=SCOPE,
    )


def context(trace_id: str, span_id: str, state: TraceState | None = None) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), True, SAMPLED, state)
