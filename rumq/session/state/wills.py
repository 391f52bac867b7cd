"""Whose a will is, and whether it may still be published when it is due. MQTT 5.0, 3.1.2.5; docs/security.md.

CONNECT was allowed to leave it; since then rules may have changed, days may have gone by, the broker may have been
started again. So the rules of the listener that its client came through are asked once more, with what is known of the
client. Knows no clock and no log."""

from __future__ import annotations

from collections.abc import Sequence

from rumq.auth.identity import Certificate, Identity
from rumq.auth.permit import Permit
from rumq.mqtt.packets import Will
from rumq.session.connection.listener_policy import ListenerPolicy
from rumq.session.journal.entries import Author


def may_leave(permit: Permit | None, will: Will) -> bool:
    """permit: None for everything"""
    if permit is None:
        return True
    return permit.may("will", will.topic) and (not will.retain or permit.may("retain", will.topic))


def author_of(who: Identity, listener: str) -> Author:
    """listener: the name of its entrance"""
    shown = who.certificate
    certificate = [] if shown is None else [shown.common_name, shown.subject, *shown.names]
    return Author(who.user, sorted(who.groups), certificate, listener)


def may_still_leave(
    author: Author | None, client_id: str, will: Will, entrances: Sequence[ListenerPolicy]
) -> bool:
    """Whether the rules as they are now allow a will. author: None where the journal does not say

    The rules of the listener that it came through are asked; if that is gone, every listener's must allow it.
    Cost: a look at every rule"""
    listener = author.listener if author is not None else None
    asked = [each for each in entrances if each.name == listener] or entrances
    who = identity_of(author)
    return all(each.rules is None or may_leave(each.rules.permit(who, client_id), will) for each in asked)


def identity_of(author: Author | None) -> Identity:
    """As rules see it; a client without a name where nothing is known."""
    if author is None:
        return Identity()
    certificate = None
    if author.certificate:
        common_name, subject, *names = author.certificate
        certificate = Certificate(common_name, subject, tuple(names))
    return Identity(author.user, frozenset(author.groups), certificate=certificate)
