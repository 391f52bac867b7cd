"""A connection that has asked for nothing yet has no deliveries of its own, and nobody can tell."""

from typing import Any

import pytest

from router import commands as c
from router.readers.subscriber import NOT_SUBSCRIBED
from rumq.mqtt import packets as p
from rumq.mqtt.reasons import Reason
from rumq.session.protocol.deliveries import NO_ACKS, NO_DELIVERIES, NO_FLOW
from tests.conformance.wire import Kind
from tests.session.broker import Broker, Wire, connected, idle

LASTING: Any = {"session_expiry_interval": 3600}
SUBSCRIBE = p.Subscribe(1, (p.SubscriptionRequest("t", 1),))


def publish(qos: int, packet_id: int | None = None) -> p.Publish:
    return p.Publish("t", b"x", qos, False, False, packet_id)


def kinds(wire: Wire) -> list[Kind]:
    return [each.kind for each in wire.hears()]


def is_shared(wire: Wire) -> bool:
    link = wire.link
    shared = [link.acks is NO_ACKS, link.flow is NO_FLOW, link.deliveries is NO_DELIVERIES]
    shared.append(link.session.subscriber is NOT_SUBSCRIBED)
    assert len(set(shared)) == 1, "all of them or none"
    return shared[0]


@pytest.fixture(autouse=True)
def nothing_is_added_to_what_all_share() -> Any:
    yield
    assert (NO_ACKS.holds, NO_ACKS.raised, NO_ACKS.barriers, NO_ACKS.traces, NO_ACKS.flow) == (
        None,
        False,
        0,
        None,
        None,
    )
    assert (NO_ACKS.wire.acks, NO_ACKS.wire.answers) == (None, 0)
    assert not (NO_FLOW.is_open or NO_FLOW.waits or NO_FLOW.window_full or NO_FLOW.delivered)
    assert NO_FLOW.window is NO_FLOW.retained is NO_FLOW.meter is NO_FLOW.aliases is None
    assert not (NO_DELIVERIES.connack_pending or NO_DELIVERIES.withheld or NO_DELIVERIES.unsent)
    assert NOT_SUBSCRIBED.sink is None and not NOT_SUBSCRIBED.filters() and not NOT_SUBSCRIBED.shape_changed


@pytest.mark.parametrize("version", [3, 4, 5])
def test_pings_and_messages_of_qos_0_need_nothing_of_its_own(version: int) -> None:
    broker = Broker()
    wire = idle(broker, version=version)
    wire.say(p.Pingreq())
    wire.say(publish(0), p.Pingreq())
    assert kinds(wire) == [Kind.PINGRESP] * 2 and is_shared(wire)
    wire.link.drained()
    wire.say(p.Disconnect())
    assert wire.closed and not broker.commands and is_shared(wire), "the router has never heard of it"


def test_a_first_message_of_qos_1_or_2_is_acknowledged_once_the_log_has_it() -> None:
    for qos, answer in ((1, Kind.PUBACK), (2, Kind.PUBREC)):
        broker = Broker()
        wire = idle(broker)
        broker.holds = True
        wire.say(publish(qos, 1))
        assert not wire.hears() and not is_shared(wire)
        broker.commit()
        assert kinds(wire) == [answer]


def test_who_subscribes_first_is_attached_before_the_subscription_is_made() -> None:
    broker = Broker()
    wire = idle(broker)
    wire.say(SUBSCRIBE)
    attach, add = broker.commands
    assert isinstance(attach, c.Attach) and isinstance(add, c.AddSubscription)
    assert attach.subscriber is add.subscriber is wire.link.session.subscriber and attach.sink is wire.link.flow
    assert kinds(wire) == [Kind.SUBACK] and not is_shared(wire)
    wire.say(SUBSCRIBE)
    assert len(broker.commands) == 3, "it is attached once"
    wire.link.lost("gone")
    assert isinstance(broker.commands[-1], c.End)


def test_a_subscribe_of_many_filters_attaches_it_likewise() -> None:
    broker = Broker()
    wire = idle(broker)
    wire.say(p.Subscribe(1, tuple(p.SubscriptionRequest(f"a/long/name/{number}", 1) for number in range(100))))
    while broker.next_turns:
        broker.next_turns.pop(0)()
    assert [type(each) for each in broker.commands] == [c.Attach] + [c.AddSubscription] * 100
    assert kinds(wire) == [Kind.SUBACK]


def test_an_unsubscribe_and_acknowledgements_of_nothing_are_answered() -> None:
    wire = idle(Broker())
    wire.say(p.Unsubscribe(1, ("t",)))
    wire.say(p.Pubrel(7, Reason.PACKET_IDENTIFIER_NOT_FOUND))
    assert kinds(wire) == [Kind.UNSUBACK, Kind.PUBCOMP]


@pytest.mark.parametrize("subscribes", [False, True])
def test_a_session_that_lasts_is_never_idle(subscribes: bool) -> None:
    """The journal has its acknowledgements, and it may have had messages in flight."""
    broker = Broker()
    wire = idle(broker, clean_start=False, properties=LASTING)
    assert not is_shared(wire)
    if subscribes:
        wire.say(SUBSCRIBE)
    wire.link.lost("gone")
    assert not is_shared(idle(broker, clean_start=False, properties=LASTING))


def test_its_connections_of_another_life_do_not_matter() -> None:
    broker = Broker()
    wire = connected(broker)
    wire.say(p.Disconnect())
    assert is_shared(idle(broker))


def test_what_it_is_promised_leaves_in_order() -> None:
    """CONNACK, then what it asked for: nothing waits for a journal that has no entry of it."""
    broker = Broker()
    broker.holds = True
    wire = idle(broker)
    wire.say(SUBSCRIBE, p.Unsubscribe(2, ("t",)), p.Pingreq())
    assert kinds(wire) == [Kind.SUBACK, Kind.UNSUBACK, Kind.PINGRESP]


def test_its_answers_and_messages_are_counted() -> None:
    broker = Broker()
    wire = idle(broker)
    wire.say(publish(0), p.Pingreq())
    wire.say(SUBSCRIBE)
    wire.say(publish(1, 2))
    wire.link.count()
    totals = broker.shard_totals
    assert (totals.published, totals.packets_in, totals.packets_out) == (2, 5, 4)
    assert wire.link.session.published == 2


def test_nothing_can_be_set_of_what_all_who_never_subscribed_share() -> None:
    with pytest.raises(AttributeError, match="has not subscribed"):
        NOT_SUBSCRIBED.shape_changed = True
