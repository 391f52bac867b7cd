"""Several brokers: each attempt begins at the next one, and tries all."""

import pytest
import trio

from rumq.client import connect_over
from rumq.client.transport.in_turn import InTurn
from tests.client.fake_broker import FakeBroker, simulated


@simulated
async def test_a_lost_broker_is_followed_by_the_next_that_answers() -> None:
    brokers = [FakeBroker() for _ in range(3)]
    brokers[1].is_up = False
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def client() -> None:
            async with connect_over(InTurn([each.open_stream for each in brokers]), reconnect=True):
                await trio.sleep_forever()

        first, _ = await brokers[0].accept()
        await first.hang_up()
        await brokers[2].accept()
        assert [len(each.tried_at) for each in brokers] == [1, 1, 1]
        nursery.cancel_scope.cancel()


@simulated
async def test_when_no_broker_is_there_the_last_reason_is_told() -> None:
    brokers = [FakeBroker() for _ in range(3)]
    for each in brokers:
        each.is_up = False
    with pytest.raises(OSError, match="all attempts failed"):
        await InTurn([each.open_stream for each in brokers])()
    assert [len(each.tried_at) for each in brokers] == [1, 1, 1]
