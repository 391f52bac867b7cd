"""Faults of requests as problem bodies (RFC 9457): one table of their types, each with its status and what it means.

A type is the address of its paragraph on the gateway's own documentation page."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec
from starlette.responses import Response

from rumq.admin.answers import Answer
from rumq.admin.operations import NotFound
from rumq.admin.units import field
from rumq.gateway.access.admission import Forbidden, Unauthorized
from rumq.gateway.consumers.channel_consumers import Superseded, TooManyConsumers
from rumq.gateway.http.media_types import PROBLEM_JSON
from rumq.gateway.http.request_body import TooLarge
from rumq.gateway.records.log_watch import TooManyWatch
from rumq.queues import QueueError, QueueFull

DOCS = "/api/v1/docs"
RETRY_SECONDS = {429: "1", 503: "1"}


class Problem(Answer, kw_only=True):
    """Why a request was not answered. RFC 9457"""

    type: Annotated[str, field("which problem it is: an address of the documentation of this gateway")]
    title: Annotated[str, field("the type in words; the same each time")]
    status: Annotated[int, field("the status of the answer")]
    detail: Annotated[str, field("what was wrong with this request, and the way out")]


class QueueFullProblem(Problem, kw_only=True):
    """A queue is at its bound. Ask again once its consumers have gone on."""

    depth: Annotated[int, field("what is not consumed: messages, or bytes, of the bound that was met")]
    depth_max: Annotated[int, field("that bound")]


class Kind(NamedTuple):
    """A type of problem. meaning: for the documentation"""

    name: str
    status: int
    title: str
    meaning: str


class Unavailable(Exception):
    """503: the broker cannot answer now."""


class Conflict(Exception):
    """409: it is there already, or has no place."""


class WrongKind(Exception):
    """415: the body is of a kind that is not understood."""


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "bad-request", 400, "Malformed request",
            "A parameter or the body is not as described, or the broker refuses the request.",
        ),
        Kind(
            "unauthorized", 401, "No valid token",
            "The request has no token, or one that is not known, was removed, or has expired.",
        ),
        Kind(
            "forbidden", 403, "Not permitted",
            "The token lacks the role, or the rules let its user read nothing of what is asked.",
        ),
        Kind(
            "not-found", 404, "Not found",
            "There is no such client, stream, partition, token, user, queue, channel, consumer, group or address.",
        ),
        Kind(
            "method-not-allowed", 405, "Method not allowed",
            "The address takes other methods; the header Allow names them.",
        ),
        Kind(
            "conflict", 409, "Already there",
            "What is to be made is there already, with other settings, or the settings name no file to keep it in.",
        ),
        Kind(
            "too-large", 413, "Body too large",
            "The body has more bytes than gateway.body_bytes_max.",
        ),
        Kind(
            "unsupported-media-type", 415, "Unsupported media type",
            "The body is of a content type that is not taken here; `detail` names those that are.",
        ),
        Kind(
            "misdirected", 421, "Unknown host name",
            "The header Host names none of gateway.hosts.",
        ),
        Kind(
            "refused-messages", 422, "Some messages were refused",
            "The broker refused some of the messages; `refused` says which and why, the others are published.",
        ),
        Kind(
            "too-many-refusals", 429, "Too many refusals",
            "Too many requests of this network with wrong tokens wait for their answer.",
        ),
        Kind(
            "refused-pushes", 422, "Some messages were refused",
            "Some messages were not taken into the queue; `refused` says which and why, the others are pushed.",
        ),
        Kind(
            "queue-full", 429, "The queue is full",
            "The queue has as many messages or bytes that are not consumed as its bound; `detail` has both.",
        ),
        Kind(
            "failed", 500, "The gateway failed",
            "A fault of the gateway; its event gateway.failed has the reason.",
        ),
        Kind(
            "unavailable", 503, "Not available now",
            "The broker does not answer, or not in time; ask again.",
        ),
        Kind(
            "too-many-watchers", 503, "Too many watchers",
            "As many requests follow the log, or wait for messages, as gateway.watchers_max permits.",
        ),
        Kind(
            "too-many-consumers", 503, "Too many consumers",
            "As many consumers of channels are there as gateway.consumers_max permits.",
        ),
    )
}  # fmt: skip
OF_FAULTS: tuple[tuple[type[Exception], str], ...] = (
    (NotFound, "not-found"), (ValueError, "bad-request"), (Unauthorized, "unauthorized"), (Forbidden, "forbidden"),
    (TooLarge, "too-large"), (WrongKind, "unsupported-media-type"), (TooManyWatch, "too-many-watchers"),
    (Conflict, "conflict"), (Superseded, "conflict"), (Unavailable, "unavailable"),
    (TooManyConsumers, "too-many-consumers"),
)  # fmt: skip
OF_QUEUES: dict[str, str] = {  # kinds of `rumq.queues.rules.errors`
    "not_found": "not-found", "exists": "conflict", "invalid": "bad-request", "not_allowed": "forbidden",
    "full": "queue-full", "unavailable": "unavailable",
}  # fmt: skip
EXPECTED: tuple[type[Exception], ...] = (*(kind for kind, _ in OF_FAULTS), QueueError)


def address_of(kind: Kind) -> str:
    return f"{DOCS}#{kind.name}"


def fields_of(name: str, detail: str) -> dict[str, Any]:
    """Of a problem, for the constructor of `Problem` or of one with more fields."""
    kind = KINDS[name]
    return {"type": address_of(kind), "title": kind.title, "status": kind.status, "detail": detail}


def response_of(problem: Problem) -> Response:
    response = Response(msgspec.json.encode(problem), problem.status, media_type=PROBLEM_JSON)
    if problem.status in RETRY_SECONDS:
        response.headers["retry-after"] = RETRY_SECONDS[problem.status]
    return response


def problem(name: str, detail: str) -> Response:
    """The answer with a problem of `KINDS`."""
    return response_of(Problem(**fields_of(name, detail)))


def problem_of(fault: Exception) -> Response:
    """The answer to a fault of `EXPECTED`; of any other one "failed", without its words."""
    if isinstance(fault, QueueFull):
        fields = fields_of("queue-full", fault.why)
        return response_of(QueueFullProblem(**fields, depth=fault.depth, depth_max=fault.depth_max))
    if isinstance(fault, QueueError):
        return problem(OF_QUEUES[fault.kind], fault.why)
    for kind, name in OF_FAULTS:
        if isinstance(fault, kind):
            return problem(name, str(fault))
    return problem("failed", "the gateway failed to answer")
