"""POST a body to a URL and read a short answer, within a time limit; it blocks, so a worker thread calls it.

A redirect is an answer and is not followed: the body is a secret, and meant for one server."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request

ANSWER_BYTES_MAX = 1 << 16


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect."""

    def redirect_request(self, *_: object) -> None:
        return None


OPENER = urllib.request.build_opener(NoRedirect)


def post(url: str, seconds_max: float, body: bytes) -> tuple[int, bytes]:
    """(status, body of the answer). raises: OSError where there is none in time"""
    request = urllib.request.Request(
        url, data=body, headers={"Content-Type": "application/json", "User-Agent": "rumq"}, method="POST"
    )
    try:
        with OPENER.open(request, timeout=seconds_max) as answer:
            return answer.status, answer.read(ANSWER_BYTES_MAX)
    except urllib.error.HTTPError as fault:
        with fault:
            return fault.code, b""
    except http.client.HTTPException as fault:  # the answer is no HTTP
        raise OSError(str(fault)) from None
