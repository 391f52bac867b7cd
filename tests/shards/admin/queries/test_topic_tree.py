"""The topic tree by level: some topics a turn, levels in the order of their names, further ones only counted."""

from collections.abc import Callable
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.admin import requests as q
from rumq.shards.admin.queries import topic_tree
from rumq.shards.admin.queries.topic_tree import TopicTreeQuery
from tests.commitlog.records import append, opened
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import ask, publish
from tests.shards.bus.world import Hand


class Parts(Hand):
    """A shard whose partition has these topics, a record of each. may_read: who asks"""

    def __init__(self, *topics: bytes, may_read: Callable[[str], bool] = lambda topic: True) -> None:
        super().__init__()
        self.may_read = may_read
        self.store, self.timers = opened(SimulatedFiles()), self
        append(self.store.own[0], [(topic, b"1") for topic in topics])

    def tree(self, **asked: Any) -> tuple[dict[str, Any], int]:
        """(answer, turns)"""
        answers: list[dict[str, Any]] = []
        TopicTreeQuery(self.store, self.timers).list(q.TopicTree(**asked), self.may_read, answers.append)  # type: ignore[arg-type]
        turns = 1
        while self.waiting:
            assert not answers
            self.waiting.pop()[1]()
            turns += 1
        (answer,) = answers
        return answer, turns


@pytest.mark.parametrize(("a_turn", "turns"), [(2, 3), (5, 2), (6, 1)])
def test_a_turn_goes_through_so_many_topics(monkeypatch: pytest.MonkeyPatch, a_turn: int, turns: int) -> None:
    monkeypatch.setattr(topic_tree, "TOPICS_A_TURN", a_turn)
    answer, took = Parts(b"b/1", b"a/1", b"b/2", b"a", b"c").tree()
    assert took == turns
    assert [(row.level, row.topics, row.is_topic) for row in answer["levels"]] == [
        ("a", 2, True), ("b", 2, False), ("c", 1, True),
    ]  # fmt: skip


def test_levels_beyond_the_bound_are_counted_and_known_ones_still_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_tree, "LEVELS_MAX", 2)
    answer, _ = Parts(b"a/1", b"b", b"c", b"d", b"a/2").tree()
    assert [(row.level, row.topics) for row in answer["levels"]] == [("a", 2), ("b", 1)]
    assert answer["left_out"] == 2


def test_a_prefix_ends_at_a_slash_and_levels_may_be_empty() -> None:
    parts = Parts(b"ab/x", b"a//y", b"a/", b"/z")
    assert [row.level for row in parts.tree()[0]["levels"]] == ["", "a", "ab"]
    below = parts.tree(prefix="a")[0]["levels"]
    assert [(row.level, row.prefix, row.topics, row.is_topic) for row in below] == [("", "a/", 2, True)]
    assert parts.tree(prefix="x")[0] == {"levels": [], "left_out": 0}


def test_the_empty_first_level_is_asked_for_by_a_flag_since_its_prefix_is_that_of_the_root() -> None:
    parts = Parts(b"/z", b"/", b"//y", b"a/b")
    below = parts.tree(below_empty=True)[0]["levels"]
    assert [(row.level, row.prefix, row.topics, row.is_topic) for row in below] == [
        ("", "/", 2, True), ("z", "/z", 1, True),
    ]  # fmt: skip
    assert [row.prefix for row in parts.tree(prefix="/")[0]["levels"]] == ["//y"]


def test_a_shard_answers_with_the_rows_that_are_skipped_and_the_page() -> None:
    answer, _ = Parts(b"a", b"b", b"c", b"d").tree(offset=1, limit=2)
    assert [row.level for row in answer["levels"]] == ["a", "b", "c"] and answer["left_out"] == 1


def test_the_topic_tree_is_told_level_by_level(shard: Shard) -> None:
    publish(shard, Client(shard, "p", 5), "plant/1/t", "plant/1/p", "plant/2/t", "other/x", "plant")
    top = ask(shard, "tree").levels
    assert [(row.level, row.is_topic, row.topics, row.records) for row in top] == [
        ("other", False, 1, 1), ("plant", True, 4, 4),
    ]  # fmt: skip
    below = ask(shard, "tree", prefix="plant").levels
    assert [(row.prefix, row.topics) for row in below] == [("plant/1", 2), ("plant/2", 1)]
    page = ask(shard, "tree", prefix="plant", offset=1, limit=1)
    assert [row.level for row in page.levels] == ["2"] and page.left_out == 1


def test_topics_that_the_reader_may_not_read_are_in_no_level_and_no_sum() -> None:
    answer, _ = Parts(b"open/1", b"open/secret/2", b"secret/1", may_read=lambda topic: "secret" not in topic).tree()
    assert [(row.level, row.topics, row.records) for row in answer["levels"]] == [("open", 1, 1)]
    assert answer["left_out"] == 0
