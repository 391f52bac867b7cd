"""What a user needs to do what with a queue: actions of the rules, on the topics of the queue.

    push                             publish    $queues/<label>/<topic>
    consume, acknowledge, reject     subscribe  $queues/<label>/#, or $queues/<label>/<topic> of a channel with a topic
    peek                             replay     the same, and subscribe
    create, change, delete a queue   retain     $queues/<label>
    create, delete, purge a channel  retain     $queues/<label>, and subscribe to what it sees
    redrive                          retain     $queues/<label>
    be told of a queue               any of publish and subscribe on a part of $queues/<label>/#, or retain

The rules of a queue are those of its dead letters, at the doors; over MQTT these are `$queues/$dead/<label>/#`.
So a rule on `$queues/news/#` is about the whole queue: that filter matches `$queues/news` too (MQTT 5.0, 4.7.1.2)."""

from __future__ import annotations

from rumq.auth.permit import Permit
from rumq.queues.rules.errors import QueueNotAllowed
from rumq.queues.rules.names import DEAD, ROOT


class QueuePermit:
    """One user's. permit: None: everything"""

    def __init__(self, user: str, permit: Permit | None) -> None:
        self._user, self._permit = user, permit

    def check_push(self, label: str, topic: str) -> None:
        """raises: QueueNotAllowed"""
        wanted = f"{ruled(label)}/{topic}"
        if self._permit is not None and not self._permit.may("publish", wanted):
            raise self._refused("push to", "publish", wanted)

    def check_consume(self, label: str, topic: str | None) -> None:
        """raises: QueueNotAllowed"""
        wanted = f"{ruled(label)}/{'#' if topic is None else topic}"
        if self._permit is not None and self._permit.reach("subscribe", wanted) != "all":
            raise self._refused("consume from", "subscribe", wanted)

    def check_peek(self, label: str, topic: str | None) -> None:
        """raises: QueueNotAllowed"""
        wanted = f"{ruled(label)}/{'#' if topic is None else topic}"
        if self._permit is not None and self._permit.reach("replay", wanted) != "all":
            raise self._refused("peek into", "subscribe and replay", wanted)

    def check_define(self, label: str) -> None:
        """raises: QueueNotAllowed"""
        if not self.may_define(label):
            raise self._refused("define", "retain", ruled(label))

    def may_define(self, label: str) -> bool:
        return self._permit is None or self._permit.may("retain", ruled(label))

    def is_told(self, label: str) -> bool:
        """Whether the queue exists for this user."""
        permit, wanted = self._permit, f"{ruled(label)}/#"
        return (
            permit is None
            or permit.reach("publish", wanted) != "none"
            or permit.reach("subscribe", wanted) != "none"
            or self.may_define(label)
        )

    def _refused(self, what: str, action: str, topic: str) -> QueueNotAllowed:
        who = f"user {self._user!r}" if self._user else "who has no user name"
        return QueueNotAllowed(
            f"not permitted: the rules do not let {who} {what} this queue; a rule that allows {action} on {topic} would"
        )


def ruled(label: str) -> str:
    """The topic that rules name a queue by."""
    return f"{ROOT}{label.removesuffix(DEAD)}"
