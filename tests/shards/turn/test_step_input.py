"""What a turn gathers for its next step."""

from rumq.shards.turn.step_input import empty_input


def test_each_partition_has_a_batch_of_its_own_and_nothing_waits() -> None:
    gathered = empty_input(2)
    assert len(gathered.batches) == 2 and gathered.batches[0] is not gathered.batches[1]
    assert [batch.count for batch in gathered.batches] == [0, 0]
    assert not gathered.commands.items and not gathered.ready.now
