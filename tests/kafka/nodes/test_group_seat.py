"""What a node says about groups that it does not coordinate, to clients and to the operator. Moves: test_moves."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from rumq.admin.socket.kept_values import KeptQuestion, KeptReply
from rumq.cluster.control.records import View
from rumq.kafka.nodes.group_seat import GENERATION_BITS, TURN_BITS, GroupSeat, first_generation
from rumq.kafka.nodes.kafka_nodes import KafkaNodes
from rumq.kafka.protocol.errors import ErrorCode
from tests.kafka.nodes.views import node, view


async def nobody(asked: KeptQuestion, seconds: float) -> KeptReply:
    raise FileNotFoundError


def seat(seen: View, refusal: str = "", told: list[Any] | None = None) -> GroupSeat:
    events = [] if told is None else told
    made = GroupSeat(
        KafkaNodes("n1", ["main"]), nobody, lambda commits: None,  # type: ignore[arg-type, return-value]
        lambda name, **fields: events.append((name, fields)), refusal,
    )  # fmt: skip
    made.see(seen)
    return made


@pytest.mark.parametrize(
    ("seen", "error", "words"),
    [
        (view(leaders=("n2",)), ErrorCode.NOT_COORDINATOR, "node n2 coordinates consumer groups: ask there"),
        (view(leaders=("n1",)), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "node n1 takes consumer groups over"),
        (view(leaders=("",)), ErrorCode.NOT_COORDINATOR, "shard 0 has no leader"),
        (view(node("n1"), node("n2", kafka=""), leaders=("n2",)), ErrorCode.NOT_COORDINATOR, "n2 leads shard 0, and"),
        (view(node("n1"), node("n3", keeps=False)), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "node n3 has a version"),
    ],
)  # fmt: skip
def test_who_asks_here_is_told_where_to_ask(seen: View, error: ErrorCode, words: str) -> None:
    found = seat(seen)
    assert found.groups is None and found.error == error and words in found.where


def test_settings_that_keep_nothing_on_a_majority_are_refused_by_name() -> None:
    found = seat(view(), "no stream has durability quorum")
    assert found.error == ErrorCode.GROUP_AUTHORIZATION_FAILED and "durability quorum" in found.where


def test_a_node_that_would_lose_commits_is_told_of_once() -> None:
    told: list[Any] = []
    found = seat(view(node("n1"), node("n3", keeps=False)), told=told)

    async def scene() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(found.run)
            for _ in range(3):
                found.see(view(node("n1"), node("n3", keeps=False)))
                await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    trio.run(scene)
    assert [name for name, _ in told] == ["kafka.groups_refused"] and "n3" in told[0][1]["why"]


def test_generations_fit_in_what_kafka_has_for_them() -> None:
    last = first_generation((1 << TURN_BITS) - 1) + (1 << GENERATION_BITS)
    assert last <= 1 << 30 and first_generation(1 << TURN_BITS) == 0
    assert first_generation(2) - first_generation(1) == 1 << GENERATION_BITS
