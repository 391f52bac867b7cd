"""The policy of a listener for the connections that come through it: authentication, rules, limits and quotas.

One object for each listener, shared by its connections and replaced in place when settings are reloaded: what changes
holds for connections made from then on."""

from __future__ import annotations

from rumq.auth.authenticator import OPEN as EVERYBODY
from rumq.auth.authenticator import Authenticator
from rumq.auth.identity import Certificate
from rumq.auth.rules import Rules
from rumq.mqtt.packets import Connect
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.rate_limits import Quotas


class ListenerPolicy:
    """limits: of this listener; None for the broker's; rules: what clients may do; None: everything

    certificate_as_user: "no", "common name" or "subject": what of a client's certificate is its user name
    user_as_client_id: the client id is the user name, whatever CONNECT says
    client_id_prefixes: one of them begins each client id; empty: any
    assigned_prefix: begins the client ids that the broker gives; empty_client_id: whether it gives any
    exact_refusals: whether a client is told that its password was wrong
    name: by which the listener is found again after a restart; mount_point: what its clients' topics begin with
    """

    __slots__ = (
        "assigned_prefix",
        "authenticator",
        "certificate_as_user",
        "client_id_prefixes",
        "empty_client_id",
        "exact_refusals",
        "index",
        "limits",
        "mount_point",
        "name",
        "quotas",
        "rules",
        "user_as_client_id",
    )  # fmt: skip

    def __init__(
        self,
        index: int = 0,
        authenticator: Authenticator = EVERYBODY,
        limits: Limits | None = None,
        *,
        rules: Rules | None = None,
        quotas: Quotas | None = None,
        certificate_as_user: str = "no",
        user_as_client_id: bool = False,
        client_id_prefixes: tuple[str, ...] = (),
        assigned_prefix: str = "rumq-",
        empty_client_id: bool = True,
        exact_refusals: bool = True,
        name: str = "",
        mount_point: str = "",
    ) -> None:
        self.index = index
        self.authenticator = authenticator
        self.limits = limits
        self.rules = rules
        self.quotas = quotas or Quotas()
        self.certificate_as_user = certificate_as_user
        self.user_as_client_id = user_as_client_id
        self.client_id_prefixes = client_id_prefixes
        self.assigned_prefix = assigned_prefix
        self.empty_client_id = empty_client_id
        self.exact_refusals = exact_refusals
        self.name = name
        self.mount_point = mount_point

    def become(self, other: ListenerPolicy) -> None:
        """Take over everything of another but what the listener's sockets go by, for those who come from now on."""
        for name in self.__slots__:
            if name not in ("mount_point", "name", "quotas"):
                setattr(self, name, getattr(other, name))
        self.quotas.become(other.quotas)

    def client_id_of(self, connect: Connect, certificate: Certificate | None) -> str:
        """The client id that a CONNECT asks for; empty: the broker assigns one."""
        if not self.user_as_client_id:
            return connect.client_id
        if certificate is not None and self.certificate_as_user != "no":
            return (
                certificate.common_name if self.certificate_as_user == "common name" else certificate.subject
            )
        return connect.username or ""


OPEN = ListenerPolicy()
