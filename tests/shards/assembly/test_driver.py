"""The turn and the pump of a shard."""

from tests.faults.shard import Shard
from tests.shards.assembly.world import Built


def test_the_pump_watches_both_workers(built: Built) -> None:
    assert len(built.watched) == 2


def test_the_turn_takes_what_clients_put(shard: Shard) -> None:
    broker, turn = shard.parts.clients.broker, shard.parts.turn
    assert broker.delivery.commands is turn._commands and broker.publishing.batches is turn.appender._batches
