"""Credentials and identities of clients, and the steps of an authentication method.

A method is a generator: it yields `Work` for another thread or a `Challenge` for the client, is sent the result, and
returns an `Identity`, or None to leave the client to the next method."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

# Methods of connections that a process of the broker's own opens: for a user, whose rules hold; and for itself.
GATEWAYS_OWN, BROKERS_OWN = "gateway's own", "broker's own"


class Certificate(NamedTuple):
    """A client's certificate, verified by TLS. subject: as "CN=pump-7,O=Plant"; names: of its subjectAltName"""

    common_name: str
    subject: str
    names: tuple[str, ...] = ()


class Credentials(NamedTuple):
    """The credentials in a CONNECT. Secrets are left out of `repr`, so that no traceback and no event has them.

    peer: address without port; now: monotonic seconds; now_us: µs since 1970
    method, data: of enhanced authentication, MQTT 5.0, 4.12
    """

    client_id: str
    username: str | None = None
    password: bytes | None = None
    certificate: Certificate | None = None
    peer: str = ""
    now: float = 0.0
    now_us: int = 0
    method: str | None = None
    data: bytes = b""

    def __repr__(self) -> str:
        shown = (each for each in zip(self._fields, self, strict=True) if each[0] not in ("password", "data"))
        return f"Credentials({', '.join(f'{name}={value!r}' for name, value in shown)})"

    @property
    def anonymous(self) -> bool:
        return self.username is None and self.password is None and self.method is None


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a client. user: None for an anonymous one; method: that established it

    certificate: if it has one; expires_us: µs since 1970, None for never
    client_id: the only one that the client may use; None: any
    last_data: for CONNACK or AUTH, the server's proof of SCRAM
    """

    user: str | None = None
    groups: frozenset[str] = frozenset()
    method: str = "anonymous"
    certificate: Certificate | None = None
    expires_us: int | None = None
    client_id: str | None = None
    last_data: bytes = field(default=b"", repr=False)

    @property
    def is_own(self) -> bool:
        """Whether a process of the broker's own speaks, not a client that it relays."""
        return self.method in (GATEWAYS_OWN, BROKERS_OWN)

    @property
    def quota_holder(self) -> str | None:
        """For whom connections and rates are counted: the user, but the gateway's own for itself."""
        is_own = self.user is not None and self.method == GATEWAYS_OWN
        return f"{GATEWAYS_OWN}\0{self.user}" if is_own else self.user


ANONYMOUS = Identity()


class Work(NamedTuple):
    """A slow call. kind: "hash" computes, "http" waits; its result is sent to the generator

    key: calls with equal keys that wait at the same time are run once; empty: no other call is equal"""

    kind: str
    run: Callable[[], Any]
    key: bytes = b""


class Challenge(NamedTuple):
    """Data for the client in an AUTH packet; the data of its reply is sent to the generator."""

    data: bytes


Steps: TypeAlias = Generator["Work | Challenge", Any, Identity | None]


class Method(Protocol):
    """An authentication method. name: as in auth.methods"""

    name: str

    def check(self, credentials: Credentials) -> Steps:
        """raises: Denied for a client that this method recognizes and whose credentials are wrong"""
