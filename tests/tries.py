"""Asking a real process again until it answers as wanted: bounded by time, as a fast machine asks often."""

from __future__ import annotations

import time
from collections.abc import Iterator

SECONDS = 30.0


def tries(seconds: float = SECONDS) -> Iterator[None]:
    """For each try; at least one."""
    until = time.monotonic() + seconds
    while True:
        yield
        if time.monotonic() > until:
            return
