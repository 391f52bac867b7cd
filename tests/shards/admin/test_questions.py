"""Questions of the operator to a running shard: each has one handler, and others are refused."""

from typing import Any

import pytest

from rumq.admin.operations import OPERATIONS
from rumq.shards.admin.questions import QUESTIONS, AdminQueries, Unknown
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import ask_raw

NEEDS: dict[str, dict[str, Any]] = {
    "client": {"client": "c"}, "disconnect": {"client": "c"}, "drop": {"client": "c"}, "subscribers": {"topic": "t"},
    "waiting": {"client": "c"}, "broadcast": {"clients": "c", "topic": "t"},
    "ban": {"kind": "client", "name": "c"}, "unban": {"kind": "client", "name": "c"},
    "reset": {"client": "c", "start": "earliest"}, "seal": {"stream": "main"},
    "trim": {"stream": "main", "below_lsn": 1},
    "trace": {"kind": "client", "name": "c"}, "untrace": {"kind": "client", "name": "c"},
}  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_has_an_answer(shard: Shard, question: str) -> None:
    assert ask_raw(shard, question, **NEEDS.get(question, {}))


@pytest.mark.parametrize("question", ["", "Status", None, 7])
def test_another_question_is_refused_with_those_that_there_are(shard: Shard, question: Any) -> None:
    with pytest.raises(Unknown, match=f"cannot answer {question!r}; ask one of status, clients, topics"):
        ask_raw(shard, question)


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_operation_without_a_handler_is_found_when_the_shard_is_built(shard: Shard, name: str) -> None:
    admin = shard.parts.operation.admin
    others = {each: handler for each, handler in admin.handlers.items() if each != name}
    with pytest.raises(LookupError, match=f"nobody in a shard answers {name}:"):
        AdminQueries(admin.status, admin._readers, others)


def test_a_handler_without_an_operation_is_found_when_the_shard_is_built(shard: Shard) -> None:
    admin = shard.parts.operation.admin
    with pytest.raises(LookupError, match=r"^levitate: in no line of TABLE"):
        AdminQueries(admin.status, admin._readers, {**admin.handlers, "levitate": admin.handlers["drop"]})


def test_an_operation_that_is_made_up_is_refused_by_its_name_and_disconnects_nobody(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that is in the table, and for which a shard has no handler."""
    Client(shard, "c", 5)
    with pytest.raises(Unknown, match="cannot answer 'levitate'"):
        ask_raw(shard, "levitate", client="c")
    monkeypatch.setitem(OPERATIONS, "levitate", OPERATIONS["drop"]._replace(name="levitate"))
    with pytest.raises(Unknown, match="cannot answer 'levitate'"):
        ask_raw(shard, "levitate", client="c")
    assert ask_raw(shard, "disconnect", client="c")["disconnected"] == 1
