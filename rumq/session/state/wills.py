"""Wills: their author, and whether the rules still permit them when they are due.

MQTT 5.0, 3.1.2.5; docs/guides/security.md.
Rules may have changed since CONNECT, and the broker may have been restarted: the rules of the client's listener are
checked again, with what the journal has of the client."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import msgspec

from rumq.auth.identity import Certificate, Identity
from rumq.auth.permit import Permit
from rumq.auth.rules import RuleSet
from rumq.mqtt.packets import Publish, Will
from rumq.mqtt.properties import Properties
from rumq.session.state.persistent_sessions import holder_of


class Author(msgspec.Struct, frozen=True, array_like=True):
    """The identity that left a will, as the journal has it. listener: its name

    certificate: common name, subject and further names; empty for none; holder: who pays for a topic that the will
    creates (`persistent_sessions.holder_of`), empty in older journals"""

    user: str | None
    groups: list[str]
    certificate: list[str]
    listener: str
    holder: str = ""


class ListenerRules(Protocol):
    """rules: None for a listener that permits everything."""

    @property
    def name(self) -> str: ...

    @property
    def rules(self) -> RuleSet | None: ...


def permits_will(permit: Permit | None, will: Will) -> bool:
    """permit: None for everything"""
    if permit is None:
        return True
    return permit.may("will", will.topic) and (not will.retain or permit.may("retain", will.topic))


def rules_permit_will(author: Author | None, client_id: str, will: Will, listeners: Collection[ListenerRules]) -> bool:
    """Whether the present rules permit a will. author: None where the journal does not say

    If the client's listener is gone, the rules of every listener must permit it. Cost: a check of every rule"""
    listener = author.listener if author is not None else None
    checked = [each for each in listeners if each.name == listener] or listeners
    identity = identity_of(author)
    return all(each.rules is None or permits_will(each.rules.permit(identity, client_id), will) for each in checked)


def author_of(identity: Identity, listener: str, address: str = "") -> Author:
    """listener: its name; address: of the client"""
    shown = identity.certificate
    certificate = [] if shown is None else [shown.common_name, shown.subject, *shown.names]
    holder = holder_of(identity.user, address) if address or identity.user is not None else ""
    return Author(identity.user, sorted(identity.groups), certificate, listener, holder)


def identity_of(author: Author | None) -> Identity:
    """The identity for rules; an anonymous client where nothing is known."""
    if author is None:
        return Identity()
    certificate = None
    if author.certificate:
        common_name, subject, *names = author.certificate
        certificate = Certificate(common_name, subject, tuple(names))
    return Identity(author.user, frozenset(author.groups), certificate=certificate)


def message_of(will: Will) -> Publish:
    """The message to publish when a will is due. MQTT 5.0, 3.1.3.2."""
    properties: Properties = {**will.properties}
    properties.pop("will_delay_interval", None)
    return Publish(will.topic, will.payload, will.qos, will.retain, False, 1 if will.qos else None, properties)
