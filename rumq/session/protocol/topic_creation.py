"""Topics that nobody has published to before: who may bring them into being. docs/security.md, "Quotas"."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link


def new_topic(link: Link, name: bytes) -> bool:
    """Number a topic that nobody has published to, if there is room for it and its publisher may add one."""
    quotas, user = link.entrance.quotas, link.who.user if link.who is not None else None
    if not quotas.may_add_topic(user) or not link.house.add_topic(name):
        return False
    quotas.added_topic(user)
    return True


def user_topics_max(link: Link) -> int | None:
    """How many topics the link's user may bring into being, if it has; None: it may bring more."""
    quotas, user = link.entrance.quotas, link.who.user if link.who is not None else None
    return None if quotas.may_add_topic(user) else quotas.topics_max
