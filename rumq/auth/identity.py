"""What a client shows when it connects, who it turns out to be, and what finding out may need.

A method of authentication is a generator: it yields `Work` for another thread or a `Challenge` for the client, is sent
what came of it, and returns an `Identity`, or None where the client is none of its business. Knows no method."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias


class Certificate(NamedTuple):
    """Of a client, checked by TLS already. subject: as "CN=pump-7,O=Plant"; names: of its subjectAltName"""

    common_name: str
    subject: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a CONNECT brought. The secrets are left out of `repr`, so that no traceback and no event has them.

    peer: address without port; now: monotonic seconds; now_us: µs since 1970
    method, data: of enhanced authentication, MQTT 5.0, 4.12
    """

    client_id: str
    username: str | None = None
    password: bytes | None = field(default=None, repr=False)
    certificate: Certificate | None = None
    peer: str = ""
    now: float = 0.0
    now_us: int = 0
    method: str | None = None
    data: bytes = field(default=b"", repr=False)

    @property
    def anonymous(self) -> bool:
        return self.username is None and self.password is None and self.method is None


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a client is. user: None for an anonymous one; method: how that was found out

    certificate: its common name, where one was shown; expires_us: µs since 1970, None for never
    client_id: which the client must use; None leaves it the choice
    """

    user: str | None = None
    groups: frozenset[str] = frozenset()
    method: str = "anonymous"
    certificate: Certificate | None = None
    expires_us: int | None = None
    client_id: str | None = None
    last_data: bytes = field(default=b"", repr=False)  # goes out with the answer: the server's proof of SCRAM


class Work(NamedTuple):
    """A call that may take long. kind: "hash" computes, "http" waits; what it returns is sent to the generator

    key: of calls that return the same: those that wait at once are answered by one; empty: none is known to"""

    kind: str
    run: Callable[[], Any]
    key: bytes = b""


class Challenge(NamedTuple):
    """Data for the client in an AUTH packet; the data of its answer is sent to the generator."""

    data: bytes


Steps: TypeAlias = Generator["Work | Challenge", Any, Identity | None]


class Method(Protocol):
    """One way to find out who a client is. name: as in auth.methods"""

    name: str

    def check(self, shown: Credentials) -> Steps:
        """raises: Denied where the client is its business, and not who it says it is"""
