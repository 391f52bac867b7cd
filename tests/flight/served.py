"""A Flight server in this process, for tests."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rumq.auth.credentials.authenticator import OPEN, Authenticator
from rumq.auth.credentials.passwords import Passwords
from rumq.auth.credentials.verification_cache import VerificationCache
from rumq.auth.rules import RuleSet, parse
from rumq.flight.client import LogClient
from rumq.flight.serving.call_authorization import CallAuthorization
from rumq.flight.serving.served_log import ServedLog
from rumq.flight.serving.server import LogServer
from rumq.table.flight_location import FlightLocation

# "secret", hashed as mosquitto does it with one round: cheap, and read by the same code.
HASHED = (
    "$7$1$c2FsdHNhbHRzYWx0$eEQE09QBPMVlC6F6I+JOT5AREPxo7WTSC595bdeT7GqK1vngZV1aMKZRgnpzpOxxVdIS7OsQ/GOpQoVDdlPd6Q=="
)
RULES = """
[[rule]]
users = ["anna"]
allow = ["subscribe", "replay"]
topics = ["plant/1/#", "plant/2/#"]

[[rule]]
deny = ["replay"]
topics = ["plant/2/#"]
"""


def users(*names: str) -> Authenticator:
    """Everybody's password is "secret"."""
    return Authenticator([Passwords(dict.fromkeys(names, HASHED), VerificationCache(300.0))])


def rules(text: str = RULES) -> RuleSet:
    return parse(text, "rules.toml")


def door_of(
    authenticator: Authenticator = OPEN,
    found: RuleSet | None = None,
    *,
    wait: Callable[[float], None] = lambda seconds: None,
    **more: Any,
) -> CallAuthorization:
    return CallAuthorization(
        authenticator, found, now=time.monotonic, now_us=lambda: time.time_ns() // 1000, wait=wait, **more
    )


@contextmanager
def served(
    root: str,
    door: CallAuthorization | None = None,
    *,
    made: Any = LogServer,
    tls: bool = False,
    port: int = 0,
    **more: Any,
) -> Iterator[Any]:
    """The server; its `told` are the events, its `address` is where it is."""
    told: list[tuple[str, dict[str, Any]]] = []
    scheme = "grpc+tls" if tls else "grpc"
    server = made(
        f"{scheme}://127.0.0.1:{port}", ServedLog(root), door or door_of(),
        event=lambda name, **fields: told.append((name, fields)), **more,
    )  # fmt: skip
    server.told, server.address = told, f"{scheme}://127.0.0.1:{server.port}"
    try:
        yield server
    finally:
        server.close(5)


def client_at(address: str, **more: Any) -> LogClient:
    """It tries once."""
    return LogClient(FlightLocation(address, **{"retries": 0, **more}), wait=lambda seconds: None)
