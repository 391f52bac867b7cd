"""What a listener allows: authentication, rules, limits, client ids.

One for each listener, shared by its connections; a reload changes it for new connections."""
# compiled: warm

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from rumq.auth.connection_rate import Arrivals
from rumq.auth.credentials.authenticator import OPEN as EVERYBODY
from rumq.auth.credentials.authenticator import Authenticator
from rumq.auth.identity import Certificate
from rumq.auth.rules import RuleSet
from rumq.mqtt.packets import Connect
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.rate_limits import Quotas

ALL_VERSIONS = frozenset({3, 4, 5})
STAYS = frozenset({"arrivals", "bytes_in", "bytes_out", "index", "is_removed", "mount_point", "name", "quotas"})


@dataclass(slots=True, eq=False)
class ListenerPolicy:
    """limits: of this listener; None: those of the broker; rules: what clients may do; None: everything

    certificate_as_user: "no", "common name" or "subject": the field of a client's certificate that is its user name
    user_as_client_id: the client id is the user name, whatever CONNECT contains
    client_id_prefixes: each client id starts with one of them; empty: any
    versions: protocol levels of CONNECT that are accepted
    assigned_prefix: starts the client ids that the broker assigns; empty_client_id: whether it assigns any
    exact_refusals: whether a client is told that its password was wrong
    name: identifies the listener over restarts; mount_point: prefix of all topics of its clients
    arrivals: counts of new connections that were over its rate
    bytes_in, bytes_out: of its clients, so far, as far as they were counted
    index: number of the listener, which no other has while the broker runs; is_removed: a reload has removed it
    is_gateway: of the node's own gateway, whose clients come as any user
    """

    index: int = 0
    authenticator: Authenticator = EVERYBODY
    limits: Limits | None = None
    rules: RuleSet | None = field(default=None, kw_only=True)
    quotas: Quotas = field(default_factory=Quotas, kw_only=True)
    certificate_as_user: str = field(default="no", kw_only=True)
    user_as_client_id: bool = field(default=False, kw_only=True)
    client_id_prefixes: tuple[str, ...] = field(default=(), kw_only=True)
    versions: frozenset[int] = field(default=ALL_VERSIONS, kw_only=True)
    assigned_prefix: str = field(default="rumq-", kw_only=True)
    empty_client_id: bool = field(default=True, kw_only=True)
    exact_refusals: bool = field(default=True, kw_only=True)
    name: str = field(default="", kw_only=True)
    mount_point: str = field(default="", kw_only=True)
    is_removed: bool = field(default=False, kw_only=True)
    is_gateway: bool = field(default=False, kw_only=True)
    arrivals: Arrivals = field(default_factory=Arrivals, kw_only=True)
    bytes_in: int = field(default=0, kw_only=True)
    bytes_out: int = field(default=0, kw_only=True)

    def become(self, other: ListenerPolicy) -> None:
        """Take the values of another policy for new connections: all but what says which one it is, its mount point,
        and the quotas' counts."""
        for name in (each.name for each in fields(self)):
            if name not in STAYS:
                setattr(self, name, getattr(other, name))
        self.quotas.become(other.quotas)

    def count(self, transport: Any) -> None:
        """Add the bytes of a connection that were counted since the last time."""
        self.bytes_in += transport.bytes_in
        self.bytes_out += transport.bytes_out

    def client_id_of(self, connect: Connect, certificate: Certificate | None) -> str:
        """The client id of a CONNECT; empty: the broker assigns one."""
        if not self.user_as_client_id:
            return connect.client_id
        if certificate is not None and self.certificate_as_user != "no":
            return certificate.common_name if self.certificate_as_user == "common name" else certificate.subject
        return connect.username or ""


OPEN = ListenerPolicy()
