"""What a user needs to do what with a queue. docs/reference/queues.md, "Permissions"."""

from __future__ import annotations

import pytest

from rumq.auth.identity import Identity
from rumq.auth.permit import ACTIONS
from rumq.auth.rules import parse
from rumq.queues.rules.errors import QueueNotAllowed
from rumq.queues.rules.permissions import QueuePermit

CALLS = {
    "push": lambda permit: permit.check_push("news", "t"),
    "push dead": lambda permit: permit.check_push("news.dead", "t"),
    "consume": lambda permit: permit.check_consume("news", None),
    "consume topic": lambda permit: permit.check_consume("news", "t"),
    "peek": lambda permit: permit.check_peek("news", None),
    "define": lambda permit: permit.check_define("news"),
}


def permit_with(actions: list[str], topic: str) -> QueuePermit:
    rules = parse(f'[[rule]]\nallow = {actions}\ntopics = ["{topic}"]\n', "rules")
    return QueuePermit("anna", rules.permit(Identity("anna"), ""))


def allowed(permit: QueuePermit) -> set[str]:
    found = set()
    for name, call in CALLS.items():
        try:
            call(permit)
            found.add(name)
        except QueueNotAllowed:
            continue
    return found


@pytest.mark.parametrize(
    ("actions", "topic", "expected"),
    [
        (list(ACTIONS), "$queues/news/#", set(CALLS)),
        (list(ACTIONS), "#", set()),  # no wildcard matches what begins with $
        (list(ACTIONS), "$queues/other/#", set()),
        (["publish"], "$queues/news/#", {"push", "push dead"}),
        (["publish"], "$queues/news/t", {"push", "push dead"}),
        (["publish"], "$queues/news/u", set()),
        (["subscribe"], "$queues/news/#", {"consume", "consume topic"}),
        (["subscribe"], "$queues/news/t", {"consume topic"}),
        (["subscribe", "replay"], "$queues/news/#", {"consume", "consume topic", "peek"}),
        (["replay"], "$queues/news/#", set()),
        (["retain"], "$queues/news/#", {"define"}),
        (["retain"], "$queues/news", {"define"}),
        (["will"], "$queues/news/#", set()),
    ],
)
def test_the_table(actions: list[str], topic: str, expected: set[str]) -> None:
    permit = permit_with(actions, topic)
    assert allowed(permit) == expected
    assert permit.is_told("news") is bool(expected or topic.endswith("/u"))


def test_without_rules_everything_is_allowed() -> None:
    assert allowed(QueuePermit("", None)) == set(CALLS)
