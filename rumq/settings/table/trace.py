"""The table of settings, continued: [trace]."""

from typing import Annotated

from msgspec import Struct

from rumq.settings.types.setting_types import LIVE, maybe_text, number, text


# fmt: off
# A table: a formatter would give each argument a line.
class Trace(Struct, frozen=True, kw_only=True):
    """Distributed tracing with OpenTelemetry: docs/reference/tracing.md. Needs a gateway, and the extra "tracing"."""

    sample_every: Annotated[
        int, number(
            "one message in so many is traced, and each whose traceparent is sampled; 0: no message is traced",
            LIVE, "messages", 0, 2**31
        )
    ] = 0
    traces_per_second_max: Annotated[
        int, number("most traces that a shard begins; further messages pass unchanged", LIVE, "traces/s", 1, 100_000)
    ] = 100
    otlp_endpoint: Annotated[
        str, maybe_text(
            "where spans are sent: OTLP over HTTP, such as http://localhost:4318; /v1/traces is added", LIVE
        )
    ] = ""
    headers_file: Annotated[
        str, maybe_text(
            'file of HTTP headers for it, "name: value" each, readable only by its owner; empty: none', LIVE
        )
    ] = ""
    service_name: Annotated[str, text("service.name of the spans", LIVE, 255)] = "rumq"
