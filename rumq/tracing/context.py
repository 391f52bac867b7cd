"""Trace contexts as text: `traceparent` of W3C Trace Context (https://www.w3.org/TR/trace-context/, 3.2)."""

from __future__ import annotations

import re
from typing import NamedTuple

VALUE = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?", re.DOTALL)
STATE_BYTES_MAX = 512  # of a tracestate that is told with a span; the message keeps a longer one as it is


class TraceContext(NamedTuple):
    """trace: 16 bytes; span: 8 bytes; flags: 1 is sampled, the others are passed on"""

    trace: bytes
    span: bytes
    flags: int = 1

    @property
    def is_sampled(self) -> bool:
        """Whether the caller records the trace."""
        return bool(self.flags & 1)

    @property
    def traceparent(self) -> bytes:
        """As a user property's value."""
        return b"00-%s-%s-%02x" % (self.trace.hex().encode(), self.span.hex().encode(), self.flags)


def parsed(value: bytes) -> TraceContext | None:
    """None for what is malformed; of a later version its first four fields count (4.3)."""
    if VALUE.fullmatch(value) is None or (value[:2] == b"00" and len(value) != 55):
        return None
    return TraceContext(
        bytes.fromhex(value[3:35].decode()), bytes.fromhex(value[36:52].decode()), int(value[53:55], 16)
    )


def told_state(state: bytes) -> str:
    """A tracestate for the exporter; empty where it is too long or no ASCII."""
    return state.decode() if len(state) <= STATE_BYTES_MAX and state.isascii() else ""
