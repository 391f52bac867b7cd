"""What a client may do, applied to what it does. docs/guides/security.md, "Authorization"."""

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router import commands as c
from router.readers.reader import Group, GroupKey, Reader
from rumq.auth.permit import Permit
from rumq.auth.rules import RuleSet, parse
from rumq.mqtt import packets as p
from rumq.mqtt.kernels.ingest import NO_RETAIN
from rumq.session.connection.client_state import Client
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.protocol import authorization
from rumq.session.protocol.authorization import SMALL_MAX, FilterForbidden
from tests.session.broker import Broker, connected

repeatable = settings(derandomize=True, deadline=None)

RULES = """
[[rule]]
allow = ["subscribe"]
topics = ["plant/#"]

[[rule]]
deny = ["subscribe"]
topics = ["plant/secret/#"]

[[rule]]
allow = ["replay"]
topics = ["plant/a/#"]

[[rule]]
allow = ["publish", "will"]
topics = ["device/%c/#"]

[[rule]]
allow = ["retain"]
topics = ["device/%c/state"]
"""
QUIET = 'forbidden_subscriptions = "grant"\n' + RULES
LASTING: Any = {"session_expiry_interval": 3600}


def rules(text: str = RULES) -> RuleSet:
    return parse(text, "rules.toml")


def client_under(text: str | None = RULES, **fields: Any) -> Client:
    """A client "c" behind its CONNACK, under these rules; None: under none."""
    policy = ListenerPolicy(rules=None if text is None else rules(text), mount_point=fields.pop("mount_point", ""))
    broker = Broker()
    found: Client = connected(broker, policy=policy, **fields).link.client
    broker.commands.clear()
    return found


def broker_of(client: Client) -> Broker:
    return cast(Broker, client.broker)


def permit(text: str = RULES) -> Permit:
    found = client_under(text).permit
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("topic_filter", "live", "replay", "shared"),
    [
        ("plant/a/b", "all", "all", "all"),
        ("plant/a/#", "all", "all", "all"),
        ("plant/b", "all", "refused", "all"),  # a replay needs both permissions
        ("plant/#", "some", "some", "refused"),  # a share's messages are for any member: all of them, or none
        ("#", "some", "some", "refused"),
        ("plant/secret/#", "refused", "refused", "refused"),
        ("elsewhere", "refused", "refused", "refused"),
    ],
)
def test_a_subscription_brings_what_may_be_received(topic_filter: str, live: str, replay: str, shared: str) -> None:
    own = permit()

    def brought(*, is_replay: bool = False, is_shared: bool = False) -> str:
        try:
            allowed = authorization.receive_permit(own, topic_filter, is_replay=is_replay, is_shared=is_shared)
        except FilterForbidden:
            return "refused"
        assert allowed in (None, own.past if is_replay else own.live)
        return "all" if allowed is None else "some"

    assert (brought(), brought(is_replay=True), brought(is_shared=True)) == (live, replay, shared)


def test_without_rules_everything_may_be_received() -> None:
    for is_replay, is_shared in ((False, False), (True, False), (False, True)):
        assert authorization.receive_permit(None, "#", is_replay=is_replay, is_shared=is_shared) is None


def test_where_the_rules_say_so_a_forbidden_subscription_is_granted_and_brings_nothing() -> None:
    quiet = permit(QUIET)
    allowed = authorization.receive_permit(quiet, "elsewhere", is_replay=False, is_shared=False)
    assert allowed is quiet.live and not allowed.may_receive("elsewhere")
    with pytest.raises(FilterForbidden):  # of a share the others would lose them
        authorization.receive_permit(quiet, "elsewhere", is_replay=False, is_shared=True)


@repeatable
@given(st.sampled_from(["plant/a/b", "plant/a", "plant/b", "plant/secret/x", "elsewhere", "device/c/state"]))
def test_what_a_filter_without_wildcards_brings_is_that_topic_or_a_refusal(topic: str) -> None:
    own = permit()
    for is_replay, receive in ((False, own.live), (True, own.past)):
        try:
            allowed = authorization.receive_permit(own, topic, is_replay=is_replay, is_shared=False)
        except FilterForbidden:
            assert not receive.may_receive(topic)
        else:
            assert allowed is None and receive.may_receive(topic)


# Rules that change


def test_clients_under_the_same_rules_share_permit_and_topics() -> None:
    text = RULES.replace("%c", "all")
    policy, broker = ListenerPolicy(rules=rules(text)), Broker()
    one, other = (connected(broker, policy=policy, client_id=name).link.client for name in ("one", "other"))
    assert one.permit is other.permit is not None and one.topics is other.topics
    assert one.topics is not broker.topics, "what others may publish to is not in it"


def test_other_rules_are_in_force_with_the_next_message() -> None:
    """The kernel remembers the topic of the last message."""
    broker, policy = Broker(), ListenerPolicy()
    wire = connected(broker, policy=policy)
    wire.say(p.Publish("elsewhere", b"x", 1, False, False, 1))
    policy.rules = rules()
    authorization.find_permit(wire.link.client, "c")
    wire.say(p.Publish("elsewhere", b"x", 1, False, False, 2))
    assert [each.code for each in wire.hears()] == [0x00, 0x87] and broker.batches[0].count == 1


def subscribed(client: Client) -> None:
    assert client.session is not None
    for asked, is_replay in (
        ("plant/a/b", False),
        ("#", False),
        ("elsewhere", False),
        ("$log/-1h/plant/b", True),
        ("plant/b", True),  # by `rumq-from`, which the filter does not show
        ("$share/g/plant/a", False),
        ("$share/g/plant/#", False),
        ("$share/", False),  # of an old journal
    ):
        client.session.own_filters().add(asked, is_replay=is_replay)


def test_subscriptions_are_held_to_new_rules_and_shared_ones_may_end() -> None:
    client = client_under(None, properties=LASTING)
    subscribed(client)
    assert client.session is not None and not client.session.guarded
    client.policy.rules = rules()
    authorization.find_permit(client, "c")
    authorization.recheck_subscriptions(client)
    own = client.permit
    assert own is not None
    left, restricted = broker_of(client).commands
    assert isinstance(left, c.RemoveSubscription) and left.asked == "$share/g/plant/#"
    assert "$share/g/plant/#" not in client.session.asked
    assert restricted.permits == {
        "plant/a/b": None,
        "#": own.live,
        "elsewhere": own.live,
        "$log/-1h/plant/b": own.past,
        "plant/b": own.past,
        "$share/g/plant/a": None,
    }
    assert client.session.guarded


def test_without_rules_any_more_subscriptions_bring_everything_again() -> None:
    client = client_under()
    subscribed(client)
    client.policy.rules = None
    authorization.find_permit(client, "c")
    assert client.permit is None and client.topics is client.broker.topics
    authorization.recheck_subscriptions(client)
    [restricted] = broker_of(client).commands
    assert restricted.permits and not any(restricted.permits.values())
    assert client.session is not None and not client.session.guarded


def test_nothing_is_checked_again_where_there_were_and_are_no_rules() -> None:
    client = client_under(None)
    subscribed(client)
    authorization.recheck_subscriptions(client)
    assert not broker_of(client).commands


# Messages that were in flight


@pytest.mark.parametrize(
    ("topic", "live", "replayed"),
    [("plant/b", True, False), ("plant/a/b", True, True), ("plant/secret/a", False, False)],
)
def test_what_was_in_flight_is_sent_again_where_it_may_still_be_received(
    topic: str, live: bool, replayed: bool
) -> None:
    client = client_under()
    assert client.session is not None
    group = Group(GroupKey(frozenset()), 1)
    client.session.own_subscriber().add_reader("$log/-1h/plant/#", Reader(9, group, [0], "c"), is_replay=True)
    assert authorization.may_receive_again(client, topic, 1) is live
    assert authorization.may_receive_again(client, topic, 9) is replayed


@pytest.mark.parametrize("text", [None, RULES], ids=["no rules", "rules"])
def test_what_was_in_flight_of_another_mount_point_is_not_sent_again(text: str | None) -> None:
    client = client_under(text, mount_point="plant/")
    assert authorization.may_receive_again(client, "plant/a", 1)
    assert not authorization.may_receive_again(client, "other/a", 1)


# Publishing


@pytest.mark.parametrize(
    ("topic", "retain", "may"),
    [
        ("device/c/state", False, True),
        ("device/c/state", True, True),
        ("device/c/log", False, True),
        ("device/c/log", True, False),
        ("device/d/state", False, False),
        ("plant/a", False, False),
    ],
)
def test_a_retained_message_needs_permission_to_be_retained(topic: str, retain: bool, may: bool) -> None:
    packet = p.Publish(topic, b"x", 1, retain, False, 1)
    assert authorization.may_publish(client_under(), packet, topic) is may
    assert authorization.may_publish(client_under(None), packet, topic)


def test_the_kernel_asks_again_about_retained_messages_where_only_others_are_allowed() -> None:
    client = client_under()
    for topic in ("device/c/state", "device/c/log"):
        client.broker.topics[topic.encode()] = 7
        authorization.allow_topic(client, topic.encode(), topic)
    assert client.topics[b"device/c/state"] == 7
    assert client.topics[b"device/c/log"] == 7 | NO_RETAIN


@pytest.mark.parametrize("count", [1, SMALL_MAX, SMALL_MAX + 1, 5 * SMALL_MAX])
def test_topics_that_were_allowed_stay_so_when_their_table_grows(count: int) -> None:
    client = client_under()
    names = [b"device/c/%d" % number for number in range(count)]
    for number, name in enumerate(names):
        client.broker.topics[name] = number
        authorization.allow_topic(client, name, name.decode())
    assert [client.topics.get(name) for name in names] == [number | NO_RETAIN for number in range(count)]
    assert client.topics.get(b"device/d/0") is None
    assert isinstance(client.topics, dict) == (count <= SMALL_MAX)
    assert client.permit is not None and client.permit.topics is client.topics, "all its clients have it"


@pytest.mark.parametrize(
    ("will", "is_kept"),
    [
        (p.Will("device/c/gone", b"", 0, False), True),
        (p.Will("device/c/gone", b"", 0, True), False),
        (p.Will("device/c/state", b"", 0, True), True),
        (p.Will("plant/a", b"", 0, False), False),
        (p.Will("$SYS/gone", b"", 0, False), False),
    ],
)
def test_a_will_that_may_not_be_published_is_left_out_and_the_client_comes_in(will: p.Will, is_kept: bool) -> None:
    client = client_under(will=will)
    assert client.session is not None and client.session.will == (will if is_kept else None)
    told = broker_of(client).told("permission.refused")
    assert [(each["action"], each["topic"]) for each in told] == ([] if is_kept else [("will", will.topic)])


def test_without_rules_too_nobody_leaves_a_will_that_nobody_may_publish() -> None:
    will = p.Will("$share/g/a", b"", 0, False)
    assert authorization.permitted_will(client_under(None), p.Connect("c", will=will)) is None
    assert authorization.permitted_will(client_under(None), p.Connect("c")) is None


def test_the_operator_is_told_ever_more_rarely() -> None:
    """A device that tries forever must not fill the operator's disk."""
    client = client_under()
    for _ in range(100):
        authorization.report(client, "publish", "plant/a")
    told = broker_of(client).told("permission.refused")
    assert [each["refused"] for each in told] == [1, 2, 4, 8, 16, 32, 64]
    assert told[0] == {
        "client_id": "c", "user": None, "action": "publish", "topic": "plant/a", "refused": 1,
    }  # fmt: skip
