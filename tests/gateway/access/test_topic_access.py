"""What a token is told of topics, by the rules of its user; what it is not told it is told to be forbidden."""

import pytest

from rumq.admin import requests as q
from rumq.admin.operations import OPERATIONS, AskingUser
from rumq.auth.identity import Identity
from rumq.auth.rules import parse
from rumq.gateway.access.admission import Forbidden
from rumq.gateway.access.tokens import Token
from rumq.gateway.access.topic_access import TopicAccess, plain
from rumq.gateway.contract.endpoints import RECORDS, VALUE, Fetch, LastValue

RULES = """
[[rule]]
users = ["anna"]
allow = ["subscribe", "replay"]
topics = ["open/#", "+/note"]
[[rule]]
users = ["root"]
allow = ["subscribe", "replay"]
topics = ["#"]
[[rule]]
users = ["live"]
allow = ["subscribe"]
topics = ["#"]
"""


def access(user: str, *roles: str) -> TopicAccess:
    token = Token("desk", frozenset(roles or ("read",)), user)  # type: ignore[arg-type]
    return TopicAccess(token, parse(RULES, "rules").permit(Identity(user or None), ""))


@pytest.mark.parametrize(
    ("name", "asked", "is_told"),
    [
        ("topics", q.Topics(topic="open/#"), True),
        ("topics", q.Topics(topic="secret/deep/#"), False),
        ("topics", q.Topics(topic="secret/+"), True),  # secret/note
        ("topics", q.Topics(), True),
        ("tree", q.TopicTree(prefix="secret"), True),  # secret/note
        ("tree", q.TopicTree(prefix="secret/deep"), False),
        ("tree", q.TopicTree(prefix="a/b/c"), False),
        ("tree", q.TopicTree(), True),
        ("ledger", q.Ledger(topic="secret/1"), False),
        ("ledger", q.Ledger(topic="open/1"), True),
        ("subscribers", q.Subscribers(topic="secret/1"), False),
        ("retained", q.Retained(topic="secret/1"), False),
        ("events", q.Events(), False),
        ("spans", q.Spans(), False),
        ("traces", q.Nothing(), False),
        ("clients", q.Clients(), True),
    ],
)
def test_a_question_about_what_may_not_be_read_is_forbidden(name: str, asked: q.Request, is_told: bool) -> None:
    tells, anna = OPERATIONS[name].tells, access("anna")
    if is_told:
        anna.check(tells, asked)
        return
    with pytest.raises(Forbidden, match=r"not permitted: .*user anna") as caught:
        anna.check(tells, asked)
    assert "token" in str(caught.value), "and the way out"
    access("root").check(tells, asked)


def test_the_role_administer_is_told_names_and_no_payload_more() -> None:
    ops = access("", "read", "administer")
    for name, asked in (
        ("topics", q.Topics(topic="secret/#")),
        ("events", q.Events()),
        ("tree", q.TopicTree()),
    ):
        ops.check(OPERATIONS[name].tells, asked)
        assert ops.maybe_reader(OPERATIONS[name].tells) is None
    for tells, wanted in (
        (OPERATIONS["retained"].tells, q.Retained(topic="secret/#")),
        (RECORDS, Fetch(topic="secret/#")),
        (VALUE, LastValue(topic="secret/1")),
    ):
        with pytest.raises(Forbidden, match=r"token desk, which has no user, .*'secret/"):
            ops.check(tells, wanted)
    assert ops.maybe_reader(OPERATIONS["retained"].tells) == AskingUser(user=None)


@pytest.mark.parametrize(("user", "reach"), [("anna", "some"), ("root", "all"), ("", "none"), ("live", "none")])
def test_reading_needs_both_subscribe_and_replay_as_a_replay_does(user: str, reach: str) -> None:
    assert access(user).reach == reach


def test_without_rules_everything_is_told() -> None:
    free = TopicAccess(Token("t", frozenset({"read"})), None)
    for operation in OPERATIONS.values():
        assert free.maybe_reader(operation.tells) is None
    free.check(OPERATIONS["events"].tells, q.Events())
    assert free.may_read("secret") and free.reach == "all"


@pytest.mark.parametrize(
    ("written", "topic_filter"),
    [
        ("a/#", "a/#"),
        ("$share/g/a/#", "a/#"),
        ("$log/earliest/a", "a"),
        ("$log/-1h/$share/g/a", "a"),
        ("$log/x", "$log/x"),
        ("$share/g", "$share/g"),
    ],
)
def test_a_filter_is_judged_without_how_it_is_to_be_served(written: str, topic_filter: str) -> None:
    assert plain(written) == topic_filter
