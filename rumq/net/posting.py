"""POST a body to a URL and read a short answer, within a time limit; for a thread that may wait. Knows no JSON."""

from __future__ import annotations

import urllib.error
import urllib.request

ANSWER_BYTES_MAX = 1 << 16


def post(url: str, seconds_max: float, body: bytes) -> tuple[int, bytes]:
    """(status, body of the answer). raises: OSError where there is none in time"""
    request = urllib.request.Request(
        url, data=body, headers={"Content-Type": "application/json", "User-Agent": "rumq"}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=seconds_max) as answer:
            return answer.status, answer.read(ANSWER_BYTES_MAX)
    except urllib.error.HTTPError as fault:
        return fault.code, b""
