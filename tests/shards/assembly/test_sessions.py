"""Sessions, their journal and their topics."""

from tests.faults.shard import Shard


def test_the_journal_s_bit_is_behind_those_of_the_partitions(shard: Shard) -> None:
    assert shard.parts.clients.broker.acks.journal_bit == 1 << len(shard.store.partitions)


def test_clients_and_the_journal_have_the_same_sessions(shard: Shard) -> None:
    assert shard.parts.clients.registry is shard.parts.clients.broker.registry
    assert shard.parts.clients.journal.partition is shard.store.internal
