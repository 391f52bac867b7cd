"""A broker that forgot the session is asked for the same subscriptions, with their identifiers."""

from rumq.client.session.subscriptions import FILTERS_A_PACKET, Subscriptions
from rumq.mqtt.packets import Subscribe, SubscriptionRequest
from rumq.mqtt.properties import Properties


def test_filters_of_one_identifier_share_a_packet() -> None:
    subscriptions = Subscriptions()
    subscriptions.add(SubscriptionRequest("a", 1), None)
    subscriptions.add(SubscriptionRequest("b", 2, True), 7)
    subscriptions.add(SubscriptionRequest("c"), None)
    subscriptions.add(SubscriptionRequest("gone"), None)
    subscriptions.remove("gone")
    assert [build(number) for number, build in enumerate(subscriptions.packets(), 1)] == [
        Subscribe(1, (SubscriptionRequest("a", 1), SubscriptionRequest("c"))),
        Subscribe(2, (SubscriptionRequest("b", 2, True),), Properties(subscription_identifiers=[7])),
    ]


def test_a_packet_has_so_many_filters() -> None:
    subscriptions = Subscriptions()
    for number in range(FILTERS_A_PACKET + 1):
        subscriptions.add(SubscriptionRequest(f"a/{number}"), None)
    assert [len(build(1).filters) for build in subscriptions.packets()] == [FILTERS_A_PACKET, 1]
