"""SUBSCRIBE and UNSUBSCRIBE: each filter granted or refused. MQTT 5.0, 3.8 to 3.11; MQTT 3.1.1 likewise."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router import commands as c
from router.readers.subscription import Subscription
from rumq.auth.rules import RuleSet, parse
from rumq.mqtt import packets as p
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.journal.entries import Unsubscribed
from rumq.session.protocol import subscribe
from tests.conformance.wire import Kind, Packet, Prop
from tests.session.broker import Broker, Wire, connected

repeatable = settings(derandomize=True, deadline=None)

LIMITS = Limits()
LASTING: Any = {"session_expiry_interval": 3600}
HOUR_US = 3600 * 10**6


def asking(*filters: str | p.SubscriptionRequest, **properties: Any) -> p.Subscribe:
    asked = tuple(
        each if isinstance(each, p.SubscriptionRequest) else p.SubscriptionRequest(each, 1) for each in filters
    )
    return p.Subscribe(1, asked, properties)  # type: ignore[arg-type]


def user(**properties: str) -> list[tuple[str, str]]:
    return [(f"rumq-{name}", value) for name, value in properties.items()]


def rules_of(text: str) -> RuleSet:
    return parse(text, "rules.toml")


RULES = rules_of('[[rule]]\nallow = ["subscribe"]\ntopics = ["plant/#"]\n')
QUIET = rules_of("""
forbidden_subscriptions = "grant"
[[rule]]
allow = ["subscribe", "replay"]
topics = ["plant/#"]
""")


class World:
    """One client, and what its requests come to."""

    def __init__(
        self, limits: Limits = LIMITS, *, version: int = 5, rules: RuleSet | None = None, **fields: Any
    ) -> None:
        self.broker = Broker(limits)
        policy = ListenerPolicy(rules=rules)
        self.wire: Wire = connected(self.broker, policy=policy, version=version, **fields)
        self.session = self.wire.link.session
        self.broker.commands.clear()
        self.broker.journal.entries.clear()

    def ask(self, *filters: str | p.SubscriptionRequest, **properties: Any) -> Packet:
        """The one answer to a SUBSCRIBE."""
        self.wire.say(asking(*filters, **properties))
        [answer] = self.wire.hears()
        return answer

    def command(self, topic_filter: str | p.SubscriptionRequest, **properties: Any) -> Any:
        """The command that one filter, which is granted, becomes."""
        assert self.ask(topic_filter, **properties).codes[0] < 0x80
        return self.broker.commands.pop()


# What a filter becomes


def test_the_options_go_along_with_the_filter() -> None:
    world = World()
    asked = p.SubscriptionRequest("a/+", 1, no_local=True, retain_as_published=True)
    command = world.command(asked, subscription_identifiers=[7])
    assert isinstance(command, c.AddSubscription) and command.subscriber is world.session.subscriber
    assert command.subscription == Subscription("a/+", 1, True, True, 7)


def test_a_shared_subscription_is_a_membership_of_the_whole_name() -> None:
    command = World().command("$share/g/a/+", subscription_identifiers=[7])
    assert isinstance(command, c.JoinShare)
    assert (command.asked, command.subscription) == ("$share/g/a/+", Subscription("a/+", 1, identifier=7))


@pytest.mark.parametrize(
    ("topic_filter", "start", "place"),
    [
        ("$log/earliest/a", None, "earliest"),
        ("a", "earliest", "earliest"),
        ("$log/earliest/a", "latest", "earliest"),  # what the filter says counts for this filter
        ("$log/7/a", None, ("offset", 7)),
        ("a", "-1h", ("time", Broker().clock.now_us - HOUR_US)),
    ],
)
def test_a_replay_begins_where_its_filter_says_or_else_the_packet(
    topic_filter: str, start: str | None, place: object
) -> None:
    world = World()
    properties = {"user_properties": user(**{"from": start})} if start else {}
    command = world.command(topic_filter, **properties)
    assert isinstance(command, c.Replay)
    assert (command.asked, command.subscription.topic_filter, command.start) == (topic_filter, "a", place)
    assert world.session.asked.items() == [(topic_filter, True)]
    [told] = world.broker.told("replay.started")
    assert told["filter"] == "a"


@pytest.mark.parametrize(
    ("rules", "topic_filter", "is_told"),
    [(QUIET, "plant/a", True), (QUIET, "#", True), (QUIET, "elsewhere", False), (None, "elsewhere", True)],
)
def test_the_operator_is_told_of_each_replay_that_brings_something(
    rules: RuleSet | None, topic_filter: str, is_told: bool
) -> None:
    """One that rules forbid whole is granted where they say so, and reads nothing."""
    world = World(rules=rules)
    assert world.ask(f"$log/earliest/{topic_filter}").codes == [1]
    assert bool(world.broker.told("replay.started")) is is_told


@pytest.mark.parametrize(
    ("handling", "is_new", "available", "retained"),
    [
        (0, True, True, True),
        (0, False, True, True),
        (1, True, True, True),
        (1, False, True, False),
        (2, True, True, False),
        (2, False, True, False),
        (0, True, False, False),
        (1, True, False, False),
    ],
)
def test_retained_messages_as_the_retain_handling_says(
    handling: int, is_new: bool, available: bool, retained: bool
) -> None:
    """MQTT-3.3.1-9 to MQTT-3.3.1-11."""
    world = World(Limits(retain_available=available))
    if not is_new:
        world.ask("a")
    assert world.command(p.SubscriptionRequest("a", 1, retain_handling=handling)).retained is retained


def test_a_filter_that_was_taken_away_is_new_again() -> None:
    world = World()
    world.ask("a")
    world.wire.say(p.Unsubscribe(2, ("a",)))
    world.wire.hears()
    assert world.command(p.SubscriptionRequest("a", 1, retain_handling=1)).retained


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("maximum", [0, 1, 2])
@pytest.mark.parametrize("asked", [0, 1, 2])
def test_the_qos_granted_is_the_one_asked_for_up_to_the_maximum(version: int, maximum: int, asked: int) -> None:
    """MQTT-3.8.4-8."""
    world = World(Limits(maximum_qos=maximum), version=version)
    answer = world.ask(p.SubscriptionRequest("a", asked))
    assert answer.codes == [min(asked, maximum)]
    assert world.broker.commands[0].subscription.qos == min(asked, maximum)


# What is refused


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    ("limits", "topic_filter", "reason"),
    [
        ({"shared_available": False}, "$share/g/a", Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED),
        ({"wildcard_available": False}, "a/+", Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED),
        ({"wildcard_available": False}, "$share/g/#", Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED),
        ({"wildcard_available": False}, "$log/earliest/#", Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED),
        ({"topic_levels_max": 2}, "a/b/c", Reason.TOPIC_FILTER_INVALID),
        ({}, "$log/$log/earliest/a", Reason.TOPIC_FILTER_INVALID),
        ({}, "$share/g/$log/earliest/a", Reason.TOPIC_FILTER_INVALID),
        ({}, "$log/earliest/$share/g/a", Reason.TOPIC_FILTER_INVALID),
        ({}, "$log/yesterday/a", Reason.TOPIC_FILTER_INVALID),
        ({}, "$log/earliest", Reason.TOPIC_FILTER_INVALID),
        ({}, "$log/7/a/+", Reason.TOPIC_FILTER_INVALID),
        ({}, "$log/earliest/$SYS/#", Reason.TOPIC_FILTER_INVALID),
    ],
)
def test_a_filter_is_refused_and_those_beside_it_are_granted(
    limits: dict[str, Any], topic_filter: str, reason: Reason, version: int
) -> None:
    """MQTT-3.9.3-1: one reason code for each filter, in order; before 5 there is one code for all refusals."""
    world = World(Limits(**limits), version=version)
    assert world.ask(topic_filter, "b").codes == [reason if version == 5 else 0x80, 1]
    assert list(world.session.asked) == ["b"]
    [told] = world.broker.told("subscribe.refused")
    assert told["why"]


@pytest.mark.parametrize("version", [4, 5])
def test_a_group_whose_home_is_away_is_refused_and_the_other_one_is_joined(version: int) -> None:
    world = World(version=version)
    world.broker.homes_away = {"$share/away/a"}
    reason = Reason.IMPLEMENTATION_SPECIFIC_ERROR if version == 5 else 0x80
    assert world.ask("$share/away/a", "$share/g/a").codes == [reason, 1]
    (command,) = world.broker.commands
    assert isinstance(command, c.JoinShare) and command.asked == "$share/g/a"
    world.broker.homes_away.clear()
    assert world.ask("$share/away/a").codes == [1]


def test_the_reason_string_says_what_the_operator_is_told() -> None:
    world = World(properties={"request_problem_information": True})
    answer = world.ask("$log/yesterday/a", "b")
    [told] = world.broker.told("subscribe.refused")
    assert dict(answer.properties)[Prop.REASON_STRING] == told["why"] and "'yesterday'" in told["why"]


@pytest.mark.parametrize("version", [4, 5])
def test_a_filter_that_is_not_permitted_is_refused_without_a_reason_string(version: int) -> None:
    world = World(version=version, rules=RULES)
    answer = world.ask("plant/a", "elsewhere")
    assert answer.codes == [1, 0x87 if version == 5 else 0x80] and not answer.properties
    [told] = world.broker.told("permission.refused")
    assert (told["action"], told["topic"]) == ("subscribe", "elsewhere")


def test_a_share_has_one_place_for_all_its_members() -> None:
    world = World()
    answer = world.ask("$share/g/a", user_properties=user(**{"from": "earliest"}))
    assert answer.codes == [Reason.TOPIC_FILTER_INVALID] and not world.broker.commands


@pytest.mark.parametrize(
    ("value", "available", "reason"),
    [
        ("yes", True, Reason.GRANTED_QOS_1),
        ("yes", False, Reason.IMPLEMENTATION_SPECIFIC_ERROR),
        ("no", True, Reason.TOPIC_FILTER_INVALID),
        ("", True, Reason.TOPIC_FILTER_INVALID),
    ],
)
def test_who_asks_who_publishes_is_told_or_refused(value: str, available: bool, reason: Reason) -> None:
    world = World(Limits(publisher_available=available))
    answer = world.ask("a", user_properties=user(publisher=value))
    assert answer.codes == [reason]
    assert [command.subscription.tells_publisher for command in world.broker.commands] == [True] * (reason < 0x80)


@pytest.mark.parametrize(
    ("pairs", "granted"),
    [
        ({"from": "earliest", "end": "yes"}, True),
        ({"from": "earliest", "end": "no"}, False),
        ({"from": "retained@-1h", "end": "yes"}, False),
        ({"end": "yes"}, False),
    ],
)
def test_a_replay_may_ask_to_be_told_its_end(pairs: dict[str, str], granted: bool) -> None:
    world = World()
    answer = world.ask("a", user_properties=user(**pairs))
    assert answer.codes == [1 if granted else Reason.TOPIC_FILTER_INVALID]
    assert [command.subscription.tells_end for command in world.broker.commands] == [True] * granted


def test_a_session_that_is_full_may_replace_what_it_has() -> None:
    """MQTT-3.8.4-3: an identical filter replaces the subscription."""
    world = World(Limits(subscriptions_max=1))
    assert world.ask("a", "a").codes == [1, 1]
    assert world.ask("b", p.SubscriptionRequest("a", 0)).codes == [Reason.QUOTA_EXCEEDED, 0]


# What ends the connection


@pytest.mark.parametrize(
    ("limits", "packet", "reason"),
    [
        ({}, asking("a", "b/#/c"), Reason.TOPIC_FILTER_INVALID),
        ({}, asking("a", "b+"), Reason.TOPIC_FILTER_INVALID),
        ({}, asking("a", "$share/g"), Reason.TOPIC_FILTER_INVALID),
        ({}, asking("a", "$share//b"), Reason.TOPIC_FILTER_INVALID),
        ({}, asking("a", "$log/earliest/b#"), Reason.TOPIC_FILTER_INVALID),
        ({}, asking("a", p.SubscriptionRequest("$log/-1h/$share/g/b", 1, no_local=True)), Reason.PROTOCOL_ERROR),
        (
            {"subscription_identifiers_available": False},
            asking("a", subscription_identifiers=[1]),
            Reason.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
        ),
    ],
)
def test_what_is_malformed_ends_the_connection_and_no_filter_is_granted(
    limits: dict[str, Any], packet: p.Subscribe, reason: Reason
) -> None:
    """MQTT 5.0, 4.13; MQTT-3.8.3-4."""
    world = World(Limits(**limits))
    world.wire.say(packet)
    assert world.wire.closed
    assert [(each.kind, each.code) for each in world.wire.hears()] == [(Kind.DISCONNECT, reason)]
    assert not any(isinstance(each, c.AddSubscription | c.JoinShare | c.Replay) for each in world.broker.commands)


# The order of things


def test_suback_and_what_was_published_before_come_first() -> None:
    """The messages that a subscription brings are those after it: SUBACK stands before them, the turn's own behind."""
    world, seen = World(), list[tuple[list[Kind], int]]()

    def settle() -> None:
        seen.append(([each.kind for each in world.wire.hears()], len(world.broker.commands)))

    world.broker.settle = settle  # type: ignore[method-assign]
    world.wire.say(asking("a"))
    assert seen == [([Kind.SUBACK], 0)] and len(world.broker.commands) == 1
    world.wire.say(p.Unsubscribe(2, ("a",)))
    assert seen[1:] == [([], 1)] and len(world.broker.commands) == 2


def test_the_journal_has_what_a_session_that_lasts_was_granted() -> None:
    world = World(properties=LASTING)
    journal = world.broker.journal
    world.ask("$log/yesterday/a")
    assert not journal.has_entries()
    world.ask("a")
    assert journal.has_entries()
    world.wire.say(p.Unsubscribe(2, ("b", "a")))
    assert journal.entries == [Unsubscribed(world.session.number, "a")] and world.session.number


# UNSUBSCRIBE


@pytest.mark.parametrize("version", [4, 5])
def test_unsuback_says_for_each_filter_whether_it_was_there(version: int) -> None:
    """MQTT-3.11.3-2; before 5 it says nothing."""
    world = World(version=version)
    world.ask("a", "$share/g/a", "$log/earliest/a")
    world.broker.commands.clear()
    filters = ("a", "b", "$share/g/a", "a", "$log/earliest/a", "$log/latest/a")
    world.wire.say(p.Unsubscribe(7, filters))
    [answer] = world.wire.hears()
    assert (answer.kind, answer.packet_id) == (Kind.UNSUBACK, 7)
    assert answer.codes == ([0, 0x11, 0, 0x11, 0, 0x11] if version == 5 else [])
    assert [command.asked for command in world.broker.commands] == list(filters)
    assert not world.session.asked


# What other shards are asked for


def test_other_shards_are_asked_for_the_plain_filters_that_may_be_granted() -> None:
    client = World(Limits(topic_levels_max=3)).wire.link.client
    asked = ["a", "$share/g/b/#", "$log/-1h/c", "$log/yesterday/d", "$log/x", "e/e/e/e"]
    filters = [p.SubscriptionRequest(each) for each in asked]
    assert subscribe.wanted(client, filters) == [
        ("a", "a"), ("$share/g/b/#", "b/#"), ("$log/-1h/c", "c"), ("$log/yesterday/d", "d"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "available", "asks"), [("yes", True, True), ("yes", False, False), ("no", True, False)]
)
def test_names_of_publishers_are_asked_for_where_they_will_be_told(value: str, available: bool, asks: bool) -> None:
    client = World(Limits(publisher_available=available)).wire.link.client
    assert subscribe.asks_publisher(client, {"user_properties": user(publisher=value)}) is asks
    assert not subscribe.asks_publisher(client, {})


# Any filters

LEVEL = st.sampled_from(["a", "b", "+", "#", "", "$share", "g", "$log", "earliest", "-1h", "7", "$SYS"])
FILTERS = st.lists(st.lists(LEVEL, min_size=1, max_size=5).map("/".join).filter(bool), min_size=1, max_size=6)


@repeatable
@given(FILTERS, st.sampled_from([4, 5]), st.sampled_from([None, RULES, QUIET]))
def test_each_filter_has_its_answer_and_those_granted_are_there(
    filters: list[str], version: int, rules: RuleSet | None
) -> None:
    world = World(Limits(subscriptions_max=3), version=version, rules=rules)
    client, asked = world.wire.link.client, asking(*filters).filters
    try:
        subscribe.check(client, asked)
    except MqttFault:
        is_malformed = True
    else:
        is_malformed = False
    world.wire.say(asking(*filters))
    assert world.wire.closed is is_malformed
    if is_malformed:
        assert not world.session.asked
        return
    [answer] = world.wire.hears()
    assert answer.kind == Kind.SUBACK and len(answer.codes) == len(filters)
    granted = [each for each, code in zip(filters, answer.codes, strict=True) if code < 0x80]
    assert set(world.session.asked) == set(granted)
    told = [getattr(each, "asked", None) or each.subscription.topic_filter for each in world.broker.commands]
    assert told == granted
