"""The owner of a session: a user, and the mount point of a listener. A client id is a name within its owner.

So no client resumes, ends or detects another owner's session by using its client id, and two tenants may use the same
client ids. docs/decisions/0018-a-session-has-an-owner.md"""
# compiled: warm

from __future__ import annotations

from typing import NamedTuple

from rumq.auth.identity import BROKERS_OWN, GATEWAYS_OWN, Identity
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.session.flow_control.limits import Limits

# In place of a mount point, which has no wildcards: no client's session is the gateway's, or the broker's, own.
GATEWAY, BROKER = "#gateway", "#broker"
UNVERIFIED = "unverified"  # the method of a client whose user name is not checked


class Owner(NamedTuple):
    """user: None for clients without a name, and for those with an unverified name; mount: "" for none, `GATEWAY`"""

    user: str | None
    mount: str


ANYBODY = Owner(None, "")


def owner_of(who: Identity, mount: str) -> Owner:
    """raises: MqttFault for a name with lone surrogates, which a token may have"""
    if who.user or who.groups:
        try:
            "".join((who.user or "", *who.groups)).encode()
        except UnicodeEncodeError:
            raise MqttFault("the name of the user, or of a group, is no text", Reason.NOT_AUTHORIZED) from None
    if who.method == GATEWAYS_OWN:
        return Owner(who.user, GATEWAY)
    if who.method == BROKERS_OWN:
        return Owner(None, BROKER)
    user = None if who.method == UNVERIFIED else who.user
    return ANYBODY if user is None and not mount else Owner(user, mount)


def key_of(client_id: str, owner: Owner | None) -> str:
    """The registry's key of a session; of `ANYBODY` it is the client id. owner: None where the journal does not say

    Neither client ids nor mount points contain NUL (MQTT 5.0, 1.5.4), so keys of different owners differ."""
    if owner is None:
        return f"{client_id}\0\0?"
    if owner == ANYBODY:
        return client_id
    return f"{client_id}\0{owner.mount}\0{'' if owner.user is None else '=' + owner.user}"


def client_id_of(key: str) -> str:
    return key.partition("\0")[0]


def expiry_seconds_of(wanted: int, owner: Owner | None, limits: Limits) -> int:
    """How long a session outlives its connection. The broker's own, which hold channels of queues, may for ever."""
    return wanted if owner is not None and owner.mount == BROKER else min(wanted, limits.session_expiry_seconds_max)
