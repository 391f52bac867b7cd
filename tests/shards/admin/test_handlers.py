"""Every operation of the table has somebody who answers it in a shard, and nobody answers what is not in the table."""

import re
from inspect import getsource

import pytest

from rumq.admin.operations import OPERATIONS, TABLE
from rumq.auth.rules import parse
from rumq.mqtt.reasons import Reason
from rumq.session.flow_control import listener_policy
from rumq.shards.admin.handlers import handlers_of
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import ask, login, publish

NEEDS = {
    "trim": {"stream": "main", "below_lsn": 0}, "seal": {"stream": "main"}, "reset": {"client": "c", "start": "latest"},
    "broadcast": {"clients": "c", "topic": "t"},
    "ban": {"kind": "client", "name": "c"}, "unban": {"kind": "client", "name": "c"},
    "trace": {"kind": "client", "name": "c"}, "untrace": {"kind": "client", "name": "c"},
    "subscribers": {"topic": "t"}, "client": {"client": "c"},
    "waiting": {"client": "c"}, "disconnect": {"client": "c"}, "drop": {"client": "c"},
}  # fmt: skip
SIGNALS = {"reload", "shutdown"}  # of this process


def test_the_table_and_the_handlers_agree(shard: Shard) -> None:
    assert sorted(shard.parts.operation.admin.handlers) == sorted(OPERATIONS)


def test_every_operation_stands_once_in_the_tables() -> None:
    """A key that is written twice in a dictionary is taken without a word, and the first handler is lost."""
    names = re.findall(r'^        "(\w+)": ', getsource(handlers_of), re.MULTILINE)
    assert sorted(names) == sorted(OPERATIONS) == sorted(each.name for each in TABLE)


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - SIGNALS))
def test_the_answer_of_a_shard_has_the_type_of_the_table(shard: Shard, name: str) -> None:
    assert login(shard, "c") == Reason.SUCCESS  # of whom some ask
    assert isinstance(ask(shard, name, **NEEDS.get(name, {})), OPERATIONS[name].answer)


@pytest.mark.parametrize("name", sorted(each.name for each in OPERATIONS.values() if each.tells.in_shards))
def test_what_a_reader_may_not_read_is_neither_told_nor_counted(
    shard: Shard, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The reader is named by the gateway; its rules are those of the gateway's clients."""
    publish(shard, Client(shard, "p", 5), "open", "secret", "secret/1", retain=True)
    shard.settle()
    with pytest.raises(ValueError, match=r"set gateway\.port"):
        ask(shard, name, reader={"user": "anna"})
    rules = parse('[[rule]]\nusers = ["anna"]\nallow = ["subscribe", "replay"]\ntopics = ["open"]\n', "rules")
    monkeypatch.setattr(listener_policy.OPEN, "is_gateway", True)
    monkeypatch.setattr(listener_policy.OPEN, "rules", rules)
    for reader, count in (({"user": "anna"}, 1), ({"user": None}, 0), (None, 3 - (name == "tree"))):
        asked = {"reader": reader} if reader is not None else {}
        answer = ask(shard, name, **asked)
        rows = getattr(answer, OPERATIONS[name].rows or "messages")
        assert (len(rows), answer.left_out) == (count, 0)
        assert reader is None or "secret" not in repr(answer)
