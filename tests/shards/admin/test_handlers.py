"""Every operation of the table has somebody who answers it in a shard, and nobody answers what is not in the table."""

import pytest

from rumq.admin.operations import OPERATIONS
from tests.faults.shard import Shard
from tests.shards.admin.world import ask

OWN = {"status", "clients", "topics", "ledger", "disconnect", "drop"}  # of `AdminQueries` itself
NEEDS = {
    "trim": {"stream": "main", "below_lsn": 0}, "seal": {"stream": "main"}, "reset": {"client": "c", "start": "latest"},
    "ban": {"kind": "client", "name": "c"}, "unban": {"kind": "client", "name": "c"},
    "trace": {"kind": "client", "name": "c"}, "untrace": {"kind": "client", "name": "c"},
    "subscribers": {"topic": "t"}, "client": {"client": "c"}, "disconnect": {"client": "c"}, "drop": {"client": "c"},
}  # fmt: skip
SIGNALS = {"reload", "shutdown"}  # of this process


def test_the_table_and_the_handlers_agree(shard: Shard) -> None:
    assert set(shard.parts.admin.more) == set(OPERATIONS) - OWN


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - SIGNALS))
def test_the_answer_of_a_shard_has_the_type_of_the_table(shard: Shard, name: str) -> None:
    assert isinstance(ask(shard, name, **NEEDS.get(name, {})), OPERATIONS[name].answer)
