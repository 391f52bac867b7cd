"""A subscription: one filter with its options, and what several that match one topic add up to. MQTT 5.0, 3.8.3.1."""
# compiled: warm

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class TopicPermit(Protocol):
    """Topics that a client may receive; equal permits are one object."""

    def may_receive(self, topic: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Subscription:
    """One topic filter with its options; hashable, so that equal sets of them can be one group.

    permit: which of the topics that the filter matches may be received; None: all
    tells_publisher: each message is sent with the client id of its publisher
    tells_end: of a replay: it is told where the log ended when it began
    tells_place: each message of QoS 1 or 2 is sent with its place in the log"""

    topic_filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int = 0
    permit: TopicPermit | None = None
    tells_publisher: bool = False
    tells_end: bool = False
    tells_place: bool = False

    @property
    def options(self) -> tuple[object, ...]:
        """All but the filter."""
        return (
            self.qos, self.no_local, self.retain_as_published, self.identifier, self.permit, self.tells_publisher,
            self.tells_place,
        )  # fmt: skip

    def covers(self, topic: str) -> bool:
        """Whether a topic that the filter matches may be received."""
        return self.permit is None or self.permit.may_receive(topic)


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """How the messages of a topic are sent to a group: what its matching subscriptions add up to.

    qos: the highest granted (MQTT 5.0, 3.3.4: one copy respects the maximum of all that match)
    identifiers: of every subscription that matched
    tells_publisher, tells_place: one of them asked for it
    """

    qos: int
    retain_as_published: bool
    no_local: bool
    identifiers: tuple[int, ...]
    tells_publisher: bool = False
    tells_place: bool = False


_usual: dict[tuple[int, bool, bool, bool, bool], DeliveryOptions] = {}
"""Forms of subscriptions without an identifier, each once: there are 48."""


def merge(matching: list[Subscription]) -> DeliveryOptions:
    """The form that one copy for all `matching` subscriptions takes."""
    if len(matching) == 1:
        one = matching[0]
        if not one.identifier:
            options = one.qos, one.retain_as_published, one.no_local, one.tells_publisher, one.tells_place
            form = _usual.get(options)
            if form is None:
                qos, as_published, no_local, publisher, place = options
                form = _usual[options] = DeliveryOptions(qos, as_published, no_local, (), publisher, place)
            return form
        return DeliveryOptions(
            one.qos,
            one.retain_as_published,
            one.no_local,
            (one.identifier,),
            one.tells_publisher,
            one.tells_place,
        )
    return DeliveryOptions(
        max(s.qos for s in matching),
        any(s.retain_as_published for s in matching),
        all(s.no_local for s in matching),
        tuple(s.identifier for s in matching if s.identifier),
        any(s.tells_publisher for s in matching),
        any(s.tells_place for s in matching),
    )
