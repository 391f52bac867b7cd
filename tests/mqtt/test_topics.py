"""Topic names, topic filters, shared subscriptions and what matches what. MQTT 5.0, 4.7 and 4.8.2."""

import itertools
import re

import pytest

from rumq.mqtt.errors import TopicFilterInvalid, TopicNameInvalid
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_filter, check_topic_name, filters_overlap, matches, parse_share


@pytest.mark.parametrize(
    "topic",
    [
        "a",
        "/",
        "//",
        "a/b",
        "/finance",
        "a b",
        "ACCOUNTS",
        "$SYS/x",
        "$share",
        "\ufeff",
        "é" * 32767,
        "/" * 65535,
    ],
)
def test_a_topic_name_may_be_any_text_without_wildcards(topic: str) -> None:
    check_topic_name(topic)
    check_topic_filter(topic)


@pytest.mark.parametrize("topic", ["", "#", "+", "a/#", "a+", "a#b", "a\0b", "\ud800", "é" * 32768])
def test_a_bad_topic_name_is_refused_with_its_reason(topic: str) -> None:
    with pytest.raises(TopicNameInvalid) as caught:
        check_topic_name(topic)
    assert caught.value.reason == Reason.TOPIC_NAME_INVALID and len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "topic_filter",
    [
        "#",
        "+",
        "sport/tennis/#",
        "sport/+",
        "+/tennis/#",
        "/+",
        "+/+",
        "sport/+/player1",
        "+/#",
        "$SYS/#",
        "$share",
    ],
)
def test_a_wildcard_may_stand_for_a_whole_level(topic_filter: str) -> None:
    check_topic_filter(topic_filter)


@pytest.mark.parametrize(
    "topic_filter",
    [
        "",
        "sport/tennis#",
        "sport/tennis/#/ranking",
        "sport+",
        "#/",
        "##",
        "+a/b",
        "a/b+/c",
        "#+",
        "a\0",
        "\udfff",
        "+" * 2,
    ],
)
def test_a_bad_topic_filter_is_refused_with_its_reason(topic_filter: str) -> None:
    for given in (topic_filter, f"$share/g/{topic_filter}"):
        with pytest.raises(TopicFilterInvalid) as caught:
            check_topic_filter(given)
        assert caught.value.reason == Reason.TOPIC_FILTER_INVALID


def test_limits_on_bytes_and_levels_are_the_callers() -> None:
    for check, refused in ((check_topic_name, TopicNameInvalid), (check_topic_filter, TopicFilterInvalid)):
        check("é/é", bytes_max=5, levels_max=2)
        with pytest.raises(refused, match="has 5 bytes, the limit is 4"):
            check("é/é", bytes_max=4)
        with pytest.raises(refused, match="has 3 levels, the limit is 2"):
            check("a//", levels_max=2)
    check_topic_filter("$share/a-long-name/a/b", bytes_max=3, levels_max=2)


@pytest.mark.parametrize(
    ("topic_filter", "parsed"),
    [
        ("$share/consumer1/sport/tennis/+", ("consumer1", "sport/tennis/+")),
        ("$share/g//finance", ("g", "/finance")),
        ("$share/g/#", ("g", "#")),
        ("$share/g/$share/h/a", ("g", "$share/h/a")),
        ("$share", None),
        ("$shared/g/a", None),
        ("$SHARE/g/a", None),
        ("/$share/g/a", None),
        ("a", None),
    ],
)
def test_a_shared_subscription_has_a_share_name_and_a_filter(topic_filter: str, parsed: tuple[str, str] | None) -> None:
    assert parse_share(topic_filter) == parsed


@pytest.mark.parametrize(
    "topic_filter",
    [
        "$share/",
        "$share//a",
        "$share/g",
        "$share/g/",
        "$share/+/a",
        "$share/#",
        "$share/g#/a",
        "$share/a+b/c",
    ],
)
def test_a_shared_subscription_without_a_name_or_a_filter_is_refused(topic_filter: str) -> None:
    for check in (parse_share, check_topic_filter):
        with pytest.raises(TopicFilterInvalid):
            check(topic_filter)


# The examples of 4.7.1.2, 4.7.1.3, 4.7.2 and 4.7.3.
@pytest.mark.parametrize(
    ("topic_filter", "topic", "matched"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/tennis/player1/#", "sport/tennis/player10", False),
        ("sport/#", "sport", True),
        ("#", "sport", True),
        ("sport/tennis/+", "sport/tennis/player1", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/monitor", False),
        ("+/monitor/Clients", "$SYS/monitor/Clients", False),
        ("$SYS/#", "$SYS/monitor", True),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", True),
        ("a/+", "a/$b", True),
        ("ACCOUNTS", "Accounts", False),
        ("/a", "a", False),
        ("+/#", "a", True),
        ("a/+/#", "a", False),
    ],
)
def test_a_filter_matches_as_in_the_examples_of_the_standard(topic_filter: str, topic: str, matched: bool) -> None:
    assert matches(topic_filter, topic) is matched


def as_expression(topic_filter: str) -> str:
    """The rules of 4.7 once more, as a regular expression."""
    body = "/".join("[^/]*" if level == "+" else re.escape(level) for level in topic_filter.split("/"))
    if topic_filter == "#":
        body = ".*"
    elif topic_filter.endswith("/#"):
        body = body.removesuffix(re.escape("/#")).removesuffix("/" + re.escape("#")) + "(/.*)?"
    return ("(?!\\$)" if topic_filter[0] in "+#" else "") + body


def test_matching_agrees_with_a_regular_expression_on_every_short_filter_and_topic() -> None:
    levels = ["", "a", "$", "+"]
    filters = ["/".join(some) for size in (1, 2, 3) for some in itertools.product(levels, repeat=size)]
    filters += ["#", *(one + "/#" for one in filters)]
    topics = ["/".join(some) for size in (1, 2, 3, 4) for some in itertools.product(["", "a", "$"], repeat=size)]
    for topic_filter in filter(None, filters):
        expression = re.compile(as_expression(topic_filter))
        for topic in filter(None, topics):
            assert matches(topic_filter, topic) == bool(expression.fullmatch(topic)), (topic_filter, topic)


LEVELS = ["a", "b", ""]
TOPICS = ["/".join(levels) for n in (1, 2, 3, 4) for levels in itertools.product(LEVELS, repeat=n)]
FILTERS = ["/".join(levels) for n in (1, 2, 3) for levels in itertools.product(["a", "b", "+"], repeat=n)]
FILTERS += [f"{one}/#" for one in FILTERS if one.count("/") < 2] + ["#"]


def test_filters_overlap_where_a_topic_is_of_both() -> None:
    topics = [topic for topic in TOPICS if topic]
    found = {one: {topic for topic in topics if matches(one, topic)} for one in FILTERS}
    for one, other in itertools.product(FILTERS, repeat=2):
        assert filters_overlap(one, other) == bool(found[one] & found[other]), (one, other)
