"""Faults of a call: a status code, a reason that programs act on, and a sentence. google.rpc.ErrorInfo, AIP-193.

Knows no log and no broker."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

DOMAIN = "rumq"
DETAILS = "grpc-status-details-bin"
RETRY_AFTER_SECONDS = 1
# Reason: its code, and what it says. docs/reference/grpc.md is made from this table.
REASONS: Mapping[str, tuple[grpc.StatusCode, str]] = {
    "LOGIN_REQUIRED": (grpc.StatusCode.UNAUTHENTICATED, "no login, or a wrong one"),
    "LOGIN_ENDED": (grpc.StatusCode.UNAUTHENTICATED, "the token has expired, was removed or changed during the call"),
    "NOT_AUTHORIZED": (grpc.StatusCode.PERMISSION_DENIED, "the rules do not let this user do it"),
    "ROLE_MISSING": (grpc.StatusCode.PERMISSION_DENIED, "the call needs a token with a role that this login has not"),
    "ARGUMENT_INVALID": (grpc.StatusCode.INVALID_ARGUMENT, "a field is missing, or has a value that is not allowed"),
    "TOPIC_INVALID": (grpc.StatusCode.INVALID_ARGUMENT, "no valid topic, or topic filter"),
    "QUEUE_UNKNOWN": (
        grpc.StatusCode.NOT_FOUND,
        "no such queue, channel or consumer, or none that this user may know of",
    ),
    "QUEUE_EXISTS": (grpc.StatusCode.ALREADY_EXISTS, "the queue or channel is there, with other settings"),
    "QUEUES_DISABLED": (grpc.StatusCode.FAILED_PRECONDITION, "`queues.enabled` is false"),
    "QUEUE_FULL": (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "the queue is at its bound, or there may be no more queues, channels or delayed messages",
    ),
    "QUEUES_AWAY": (grpc.StatusCode.UNAVAILABLE, "queues cannot answer now; what was asked may have been done or not"),
    "CURSOR_INVALID": (grpc.StatusCode.INVALID_ARGUMENT, "the cursor, or page token, is none that an answer has given"),
    "ID_UNKNOWN": (grpc.StatusCode.INVALID_ARGUMENT, "the topic has no record with this id, nor a later one"),
    "ID_EXPIRED": (grpc.StatusCode.INVALID_ARGUMENT, "the record has expired"),
    "ID_REMOVED": (grpc.StatusCode.INVALID_ARGUMENT, "retention has removed the record, or its file is damaged"),
    "MESSAGE_REFUSED": (grpc.StatusCode.FAILED_PRECONDITION, "the broker refuses the message, and says why"),
    "MESSAGE_TOO_LARGE": (grpc.StatusCode.RESOURCE_EXHAUSTED, "a message is larger than the broker takes"),
    "REQUEST_TOO_LARGE": (grpc.StatusCode.RESOURCE_EXHAUSTED, "a request has more messages or topics than are taken"),
    "TOO_MANY_CALLS": (grpc.StatusCode.RESOURCE_EXHAUSTED, "so many calls are open already"),
    "TOO_MANY_LOGINS": (grpc.StatusCode.RESOURCE_EXHAUSTED, "too many wrong logins wait already"),
    "TOO_MANY_BYTES": (grpc.StatusCode.RESOURCE_EXHAUSTED, "so many bytes wait for the broker already"),
    "QUOTA_EXCEEDED": (grpc.StatusCode.RESOURCE_EXHAUSTED, "a quota of the broker"),
    "BROKER_AWAY": (grpc.StatusCode.UNAVAILABLE, "the broker of this node does not answer, or ended the connection"),
    "LOG_UNREADABLE": (grpc.StatusCode.UNAVAILABLE, "the files of the log cannot be read"),
    "NO_COPY_HERE": (grpc.StatusCode.UNAVAILABLE, "this node has no copy of a partition, or one that is behind"),
    "SHUTTING_DOWN": (grpc.StatusCode.UNAVAILABLE, "the server is stopping"),
    "INTERNAL": (grpc.StatusCode.INTERNAL, "a bug of rumq"),
}


class CallFault(Exception):
    """Ends a call. reason: of `REASONS`; detail: a sentence; metadata: further values for programs"""

    def __init__(self, reason: str, detail: str, **metadata: object) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail
        self.metadata = {name: str(value) for name, value in metadata.items()}

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"

    @property
    def code(self) -> grpc.StatusCode:
        return REASONS[self.reason][0]

    def trailing(self) -> tuple[tuple[str, bytes], ...]:
        """Trailing metadata of the call: google.rpc.Status with its ErrorInfo."""
        info = error_details_pb2.ErrorInfo(reason=self.reason, domain=DOMAIN, metadata=self.metadata)
        packed = any_pb2.Any()
        packed.Pack(info)
        details = [packed]
        if self.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED):
            retry = error_details_pb2.RetryInfo()
            retry.retry_delay.seconds = RETRY_AFTER_SECONDS
            details.append(any_pb2.Any())
            details[-1].Pack(retry)
        status = status_pb2.Status(code=self.code.value[0], message=self.detail, details=details)
        return ((DETAILS, status.SerializeToString()),)


def shutting_down() -> CallFault:
    return CallFault("SHUTTING_DOWN", "the server of this node is stopping: go on at another node, or try again")
