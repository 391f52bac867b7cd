"""Rules of topics mean what mosquitto.conf(5) says of `topic`."""

import pytest

from rumq.bridge.counts import IN, OUT
from rumq.bridge.topic_rules import TopicMap, TopicRule, TopicRuleFault, parse_rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("plant/#", TopicRule("plant/#", "out", 0)),
        ("plant/# in", TopicRule("plant/#", "in", 0)),
        ("plant/# both 2", TopicRule("plant/#", "both", 2)),
        ("# out 1 here/", TopicRule("#", "out", 1, "here/")),
        ('# in 1 "" there/', TopicRule("#", "in", 1, "", "there/")),
        ('"" out 0 a/b c', TopicRule("", "out", 0, "a/b", "c")),
        ('"with space/#" out', TopicRule("with space/#", "out", 0)),
        ("$SYS/# in 0 centre/", TopicRule("$SYS/#", "in", 0, "centre/")),
    ],
)
def test_a_rule_is_read(text: str, rule: TopicRule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected"),
        ("a b", "no direction"),
        ("a out 3", "no QoS"),
        ("a out 1 b c d", "expected"),
        ('"', "expected"),
        ("a/#/b", "#"),
        ("# out 0 +/", "wildcard"),
        ("# out 0 a", "#"),
        ('"" out 0 a', "both prefixes"),
        ("$share/g/a", "shared"),
    ],
)
def test_a_rule_that_is_none_says_why(text: str, words: str) -> None:
    with pytest.raises(TopicRuleFault, match=words):
        parse_rule(text)


def names(direction: str, *rules: str) -> TopicMap:
    return TopicMap([parse_rule(each) for each in rules], direction)


def test_prefixes_are_replaced_each_way() -> None:
    rule = "temp/# both 1 house/ plant/"
    assert names(OUT, rule).maybe_target_topic("house/temp/1") == "plant/temp/1"
    assert names(IN, rule).maybe_target_topic("plant/temp/1") == "house/temp/1"
    assert names(OUT, rule).subscriptions() == {"house/temp/#": 1}
    assert names(IN, rule).subscriptions() == {"plant/temp/#": 1}


def test_two_names_may_be_one_topic() -> None:
    assert names(OUT, '"" out 0 a/b c').maybe_target_topic("a/b") == "c"


def test_the_first_rule_that_matches_names_it() -> None:
    found = names(OUT, "a/+ out 0 '' one/", "a/# out 2 '' two/")
    assert found.maybe_target_topic("a/b") == "one/a/b" and found.maybe_target_topic("a/b/c") == "two/a/b/c"


def test_a_direction_has_its_own_rules_and_other_topics_have_no_name() -> None:
    found = names(IN, "up/# out", "down/# in 2", "down/# both 1")
    assert found.subscriptions() == {"down/#": 2}
    assert found.maybe_target_topic("up/1") is None


def test_the_parent_of_a_prefix_is_not_below_it() -> None:
    """`#` matches the level above it, which has no prefix to be replaced."""
    assert names(OUT, "# out 0 a/ b/").maybe_target_topic("a") is None


@pytest.mark.parametrize("topic", ["there/$queues/$config/orders", "there/$SYS/a", "there/$CONTROL/a/v1"])
def test_a_wildcard_names_no_topic_that_begins_with_a_dollar_sign(topic: str) -> None:
    """Those are orders to a broker, and the bridge may give them: so they come where a rule says them alone."""
    assert names(IN, "# in 1 '' there/").maybe_target_topic(topic) is None
    assert names(IN, "+/+/+ in 1 '' there/", "# in 1 far/ there/").maybe_target_topic(topic) == f"far/{topic[6:]}"
    assert names(IN, "$queues/# in 1", "$SYS/# in 0 far/ ''").maybe_target_topic("$queues/a") == "$queues/a"
    assert names(IN, "# in 1 $own/ there/").maybe_target_topic("there/a") == "$own/a"
