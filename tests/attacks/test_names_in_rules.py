"""User names and client ids written as patterns: `%c`, `+`, `#`, `a/b`. They widen no allow and escape no deny."""

import pytest

from rumq.auth.identity import Identity
from rumq.auth.rules import RuleSet, parse
from rumq.mosquitto.acl import parse_acl

HOSTILE = ["a/b", "+", "#", "a+", "a#", "/", ""]


def rules(*lines: str) -> RuleSet:
    return parse("".join(f"[[rule]]\n{line}\n" for line in lines), "rules")


@pytest.mark.parametrize("user", ["%c", "%u", "%%", "%%c", "%c%u"])
def test_a_mark_in_a_name_is_not_filled_in(user: str) -> None:
    permit = rules('allow = ["publish", "subscribe"]\ntopics = ["home/%u/#"]').permit(Identity(user), "victim")
    assert permit.may("publish", f"home/{user}/x")
    for topic in ("home/victim/x", "home/%/x", f"home/{user}victim/x"):
        assert not permit.may("publish", topic)
    assert permit.reach("subscribe", "home/victim/#") == "none"


@pytest.mark.parametrize(
    ("topic", "allowed", "other"),
    [
        ("%%/%u/#", "%/ann/x", "%/bob/x"),
        ("%%u/%c/#", "%u/pump/x", "ann/pump/x"),
        ("100%%/%c", "100%/pump", "100%%/pump"),
        ("%x/%c", "%x/pump", "x/pump"),
    ],
)
def test_a_plain_percent_sign_stands_beside_marks(topic: str, allowed: str, other: str) -> None:
    permit = rules(f'allow = ["publish"]\ntopics = ["{topic}"]').permit(Identity("ann"), "pump")
    assert permit.may("publish", allowed)
    assert not permit.may("publish", other)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("mark", ["%u", "%c"])
def test_an_allow_is_not_for_a_name_that_would_widen_it(name: str, mark: str) -> None:
    who, client_id = (Identity(name), "pump") if mark == "%u" else (Identity("ann"), name)
    permit = rules(f'allow = ["publish", "subscribe"]\ntopics = ["home/{mark}/#"]').permit(who, client_id)
    for topic in ("home/a/x", f"home/{name}/x", "home/x", "home"):
        assert not permit.may("publish", topic)
    assert permit.reach("subscribe", "#") == "none"


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("mark", ["%u", "%c"])
def test_a_deny_holds_for_a_name_that_it_cannot_have_meant(name: str, mark: str) -> None:
    """From the level on that would have the name, nothing is left of what others allow."""
    who, client_id = (Identity(name), "pump") if mark == "%u" else (Identity("ann"), name)
    every = '["publish", "subscribe"]'
    both = rules(f'allow = {every}\ntopics = ["#"]', f'deny = {every}\ntopics = ["home/{mark}/locked"]')
    permit = both.permit(who, client_id)
    for topic in (f"home/{name}/locked", "home/a/b/locked", "home/a/locked", "home/x"):
        assert not permit.may("publish", topic)
    assert permit.reach("subscribe", "home/+/locked") == "none"
    assert permit.may("publish", "garden/x")
    assert [reason.effect for reason in both.explain(who, client_id, "publish", "home/a/locked")] == [
        "allows",
        "denies",
    ]


def test_a_deny_of_one_s_own_topics_says_nothing_of_who_has_no_name() -> None:
    both = rules('allow = ["publish"]\ntopics = ["#"]', 'deny = ["publish"]\ntopics = ["home/%u/locked"]')
    assert both.permit(Identity(), "pump").may("publish", "home/a/locked")


@pytest.mark.parametrize(
    ("line", "topic", "allowed"),
    [
        ("topic 100%%/x", "100%%/x", True),
        ("topic %u/%%/x", "%u/%%/x", True),
        ("topic %u/x", "ann/x", False),
        ("pattern 100%%/%u", "100%%/ann", True),
        ("pattern %%u/x", "%ann/x", True),
    ],
)
def test_mosquitto_s_percent_signs_are_read_as_mosquitto_does(line: str, topic: str, allowed: bool) -> None:
    permit = parse_acl(f"user ann\n{line}\n", "acl").permit(Identity("ann"), "pump")
    assert permit.may("publish", topic) is allowed


@pytest.mark.parametrize("mark", ["%u", "%c"])
@pytest.mark.parametrize("written", ["{}/#", "{}/+", "{}", "home/{}/#", "{}/broker/uptime"])
@pytest.mark.parametrize("name", ["$SYS", "$", "$SYS/broker", "$share", "$log"])
def test_a_name_that_begins_with_a_dollar_sign_opens_none_of_the_broker_s_own_topics(
    mark: str, written: str, name: str
) -> None:
    who, client_id = (Identity(name), "pump") if mark == "%u" else (Identity("ann"), name)
    permit = rules(f'allow = ["publish", "subscribe", "replay"]\ntopics = ["{written.format(mark)}"]').permit(
        who, client_id
    )
    for topic in ("$SYS/broker/uptime", "$SYS", f"{name}/x", name, f"home/{name}/x"):
        assert not permit.may("subscribe", topic) and not permit.may("publish", topic)
    assert permit.reach("subscribe", "$SYS/#") == "none"


@pytest.mark.parametrize(("name", "topic"), [("$SYS", "$SYS/locked"), ("$a/b", "$a/b/locked"), ("$a/b", "$a/c")])
def test_a_deny_holds_for_such_a_name(name: str, topic: str) -> None:
    both = rules(
        'allow = ["subscribe"]\ntopics = ["#", "$SYS/#", "$a/#"]',
        'deny = ["subscribe"]\ntopics = ["%c/locked"]',
    )
    assert both.permit(Identity("ann"), "pump").may("subscribe", topic)
    assert not both.permit(Identity("ann"), name).may("subscribe", topic)
