"""Origins as browsers send them: RFC 6454, 6.2."""

from __future__ import annotations

import re

ANY = "*"
ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")


def origin_problem(origin: str) -> str:
    """Why this is no origin; empty if it is."""
    if origin == ANY or (ORIGIN.fullmatch(origin) and origin == origin.lower()):
        return ""
    return 'expected "*", or scheme, host and port in lower case as in "https://app.example:8443", without a path'
