"""What rules allow, filter against filter and topic by topic. The oracle for filters is `matches` itself."""

import itertools

import pytest

from rumq.auth.errors import SecretsError
from rumq.auth.filters import FilterSet, covers, overlap
from rumq.auth.identity import Certificate, Identity
from rumq.auth.rules import parse
from rumq.mqtt.topics import matches

LEVELS = ["a", "b", "+", "#", "$x", ""]
TOPICS = ["/".join(parts) for n in (1, 2, 3, 4) for parts in itertools.product(["a", "b", "c", "", "$x"], repeat=n)]
FILTERS = sorted(
    {
        "/".join(parts)
        for n in (1, 2, 3)
        for parts in itertools.product(LEVELS, repeat=n)
        if "#" not in parts[:-1] and any(parts)
    }
)
MATCHED = {each: frozenset(t for t in TOPICS if matches(each, t)) for each in FILTERS}


def test_covering_is_what_matching_says() -> None:
    wrong = [(a, b) for a in FILTERS for b in FILTERS if covers(a, b) and not MATCHED[b] <= MATCHED[a]]
    assert not wrong
    # Levels below those tried here make it differ, never the other way round.
    missed = [(a, b) for a in FILTERS for b in FILTERS if not covers(a, b) and MATCHED[b] <= MATCHED[a]]
    assert all(not MATCHED[b] or b.count("+") or b.endswith("#") for _, b in missed)


def test_overlapping_is_what_matching_says() -> None:
    for a, b in itertools.product(FILTERS, repeat=2):
        assert overlap(a, b) == bool(MATCHED[a] & MATCHED[b]), (a, b)


def test_a_set_matches_what_one_of_it_does() -> None:
    some = FilterSet(FILTERS[::7])
    for topic in TOPICS:
        if topic:
            assert some.match(topic) == any(matches(each, topic) for each in FILTERS[::7]), topic


RULES = """
[groups]
operators = ["anna", "ben"]

[[rule]]
groups = ["operators"]
allow = ["publish", "subscribe", "replay", "retain"]
topics = ["plant/#"]

[[rule]]
allow = ["publish", "will"]
topics = ["device/%c/#", "user/%u/state"]

[[rule]]
deny = ["publish"]
topics = ["plant/stop"]

[[rule]]
anonymous = true
allow = ["subscribe"]
topics = ["public/+"]

[[rule]]
certificates = ["meter-*"]
allow = ["publish"]
topics = ["meters/#"]

[[rule]]
users = ["anna"]
deny = ["subscribe"]
topics = ["plant/secret/#"]
"""
ANNA, EVE, NOBODY = Identity("anna"), Identity("eve"), Identity()
METER = Identity("m", certificate=Certificate("meter-7", "CN=meter-7"))


@pytest.mark.parametrize(
    ("who", "client_id", "action", "topic", "allowed"),
    [
        (ANNA, "c", "publish", "plant/1", True),
        (ANNA, "c", "publish", "plant/stop", False),
        (ANNA, "c", "will", "plant/1", False),
        (EVE, "c", "publish", "plant/1", False),
        (EVE, "c", "publish", "device/c/x", True),
        (EVE, "c", "publish", "device/d/x", False),
        (EVE, "+", "publish", "device/d/x", False),
        (EVE, "c", "publish", "user/eve/state", True),
        (NOBODY, "c", "publish", "user//state", False),
        (NOBODY, "c", "publish", "device/c/x", True),
        (METER, "c", "publish", "meters/7", True),
        (EVE, "c", "publish", "meters/7", False),
    ],
)
def test_who_may_publish_where(who: Identity, client_id: str, action: str, topic: str, allowed: bool) -> None:
    permit = parse(RULES, "rules").permit(who, client_id)
    assert permit.may(action, topic) is allowed  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("who", "action", "topic_filter", "reach"),
    [
        (ANNA, "subscribe", "plant/line/#", "all"),
        (ANNA, "subscribe", "plant/#", "some"),
        (ANNA, "subscribe", "#", "some"),
        (ANNA, "subscribe", "plant/secret/1", "none"),
        (ANNA, "subscribe", "+/secret/1", "some"),
        (ANNA, "replay", "plant/line", "all"),
        (NOBODY, "subscribe", "public/a", "all"),
        (NOBODY, "subscribe", "public/#", "some"),
        (NOBODY, "replay", "public/a", "none"),
        (EVE, "subscribe", "public/a", "none"),
    ],
)
def test_how_much_a_filter_brings(who: Identity, action: str, topic_filter: str, reach: str) -> None:
    permit = parse(RULES, "rules").permit(who, "c")
    assert permit.reach(action, topic_filter) == reach  # type: ignore[arg-type]


def test_a_sight_is_one_object_for_all_who_may_the_same() -> None:
    rules = parse(RULES.replace("%c", "c").replace("%u", "u"), "rules")
    assert rules.permit(EVE, "1").live is rules.permit(Identity("ida"), "2").live
    assert rules.permit(EVE, "1") is not rules.permit(ANNA, "1")


def test_what_is_received_now_may_be_refused_of_the_past() -> None:
    permit = parse('[[rule]]\nallow = ["subscribe"]\ntopics = ["a"]\n', "rules").permit(EVE, "c")
    assert permit.live.may_receive("a")
    assert not permit.past.may_receive("a")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[rule]]\ntopics = ['a']", "neither allow nor deny"),
        ("[[rule]]\nallow = ['publish']", "topics"),
        ("[[rule]]\nallow = ['fly']\ntopics = ['a']", "fly"),
        ("[[rule]]\nallow = ['publish']\ntopics = ['a#']", "a#"),
        ("[[rule]]\nalow = ['publish']\ntopics = ['a']", "alow"),
        ("[groups]\na = []\n[[rule]]\ngroups = ['b']\nallow = ['publish']\ntopics = ['a']", "no group 'b'"),
        ("x =", "TOML"),
    ],
)
def test_a_file_that_cannot_be_taken_says_why(text: str, words: str) -> None:
    with pytest.raises(SecretsError) as refused:
        parse(text, "rules")
    assert words in str(refused.value)


def test_a_decision_is_explained() -> None:
    rules = parse(RULES, "rules")
    assert rules.explain(ANNA, "c", "publish", "plant/stop") == [
        (1, "allows", "plant/#"),
        (3, "denies", "plant/stop"),
    ]
    assert rules.explain(EVE, "c", "publish", "device/c/x") == [(2, "allows", "device/%c/#")]
    assert rules.explain(EVE, "c", "publish", "x") == []


@pytest.mark.parametrize("wide", ["#", "+/#"])
def test_a_wildcard_at_the_begin_covers_no_topic_of_a_dollar_neither_in_allow_nor_in_deny(wide: str) -> None:
    """MQTT-4.7.2-1; docs/guides/security.md says so of rules."""
    who = Identity("anna")
    allows = parse(f'[[rule]]\nallow = ["publish", "subscribe"]\ntopics = ["{wide}"]\n', "f").permit(who, "c")
    assert allows is not None
    assert allows.may("publish", "plant/7") and not allows.may("publish", "$plant/7")
    assert allows.reach("subscribe", "$SYS/#") == "none"
    both = '[[rule]]\nallow = ["subscribe"]\ntopics = ["#", "$SYS/#"]\n'
    denies = parse(f'{both}[[rule]]\ndeny = ["subscribe"]\ntopics = ["{wide}"]\n', "f").permit(who, "c")
    assert denies is not None
    assert denies.reach("subscribe", "plant/7") == "none" and denies.reach("subscribe", "$SYS/#") == "all"
