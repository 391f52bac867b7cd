"""Contexts of traces in messages: W3C `traceparent` and `tracestate` as user properties. docs/reference/tracing.md.

OpenTelemetry is imported only by who uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumq.client.session.messages import Message

if TYPE_CHECKING:
    from opentelemetry.context import Context

NAMES = ("traceparent", "tracestate", "baggage")


def opentelemetry_context() -> dict[str, str]:
    """The context of the current span, for `connect(trace=opentelemetry_context)`; empty where there is none."""
    from opentelemetry import propagate

    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier


def context_of(message: Message) -> Context:
    """The context that a message came with, for `tracer.start_as_current_span(..., context=context_of(message))`."""
    from opentelemetry import propagate

    found = {name: value for name in NAMES if (value := message.maybe_user_property(name)) is not None}
    return propagate.extract(found)
