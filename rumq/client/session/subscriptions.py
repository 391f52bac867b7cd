"""The subscriptions of a client, so that a broker which forgot the session can be asked for them again. No I/O."""

from collections.abc import Callable, Iterator

from rumq.mqtt.packets import Subscribe, SubscriptionRequest
from rumq.mqtt.properties import Properties

FILTERS_A_PACKET = 1000
Build = Callable[[int], Subscribe]


class Subscriptions:
    """Granted filters with their options and properties, without the start of a replay."""

    def __init__(self) -> None:
        self._granted: dict[str, tuple[SubscriptionRequest, int | None]] = {}

    def __len__(self) -> int:
        return len(self._granted)

    def add(self, subscription: SubscriptionRequest, identifier: int | None) -> None:
        self._granted[subscription.topic_filter] = subscription, identifier

    def remove(self, topic_filter: str) -> None:
        self._granted.pop(topic_filter, None)

    def packets(self) -> Iterator[Build]:
        """What makes each SUBSCRIBE from its packet id: filters of one identifier share a packet."""
        by_identifier: dict[int | None, list[SubscriptionRequest]] = {}
        for subscription, identifier in self._granted.values():
            by_identifier.setdefault(identifier, []).append(subscription)
        for identifier, subscriptions in by_identifier.items():
            properties = Properties() if identifier is None else Properties(subscription_identifiers=[identifier])
            for at in range(0, len(subscriptions), FILTERS_A_PACKET):
                yield builder(tuple(subscriptions[at : at + FILTERS_A_PACKET]), properties)


def builder(filters: tuple[SubscriptionRequest, ...], properties: Properties) -> Build:
    return lambda packet_id: Subscribe(packet_id, filters, properties)
