"""Connected clients by listener are counted some sessions a turn."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.shards.admin.listings import survey
from rumq.shards.admin.listings.survey import Survey
from tests.shards.bus.world import Hand


def session(listener: int | None) -> Any:
    """Of a client of this listener; None: it is away."""
    client = SimpleNamespace(policy=SimpleNamespace(index=listener))
    return SimpleNamespace(link=None if listener is None else SimpleNamespace(client=client))


def registry(*listeners: int | None) -> Any:
    return SimpleNamespace(sessions={number: session(each) for number, each in enumerate(listeners)})


@pytest.mark.parametrize(("a_turn", "turns"), [(2, 3), (3, 2), (5, 1), (1024, 1)])
def test_a_turn_counts_so_many(monkeypatch: pytest.MonkeyPatch, a_turn: int, turns: int) -> None:
    monkeypatch.setattr(survey, "SESSIONS_A_TURN", a_turn)
    hand, answers = Hand(), list[Any]()
    Survey(registry(0, 1, None, 1, 2), hand).ask(lambda connected: {"by": connected})(answers.append)
    took = 1
    while hand.waiting:
        assert answers == []
        hand.waiting.pop()[1]()
        took += 1
    assert took == turns and answers == [{"by": Counter({1: 2, 0: 1, 2: 1})}]


def test_nobody_is_counted_at_once() -> None:
    hand, answers = Hand(), list[Any]()
    Survey(registry(), hand).ask(lambda connected: {"all": connected.total()})(answers.append)
    assert answers == [{"all": 0}] and not hand.waiting


def test_a_client_that_leaves_in_between_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "SESSIONS_A_TURN", 1)
    hand, answers = Hand(), list[Any]()
    clients = registry(0, 0, 0)
    Survey(clients, hand).ask(lambda connected: {"all": connected.total()})(answers.append)
    clients.sessions.pop(0).link = None
    while hand.waiting:
        hand.waiting.pop()[1]()
    assert answers == [{"all": 2}]
