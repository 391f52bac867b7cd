"""rumq.client against rumqd."""

import pytest
import trio

from rumq.client import Outgoing, Refused, connect
from tests.broker_process import Address


def run(main: object) -> None:
    async def limited() -> None:
        with trio.fail_after(60):
            await main()  # type: ignore[operator]

    trio.run(limited)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_arrive_once_and_in_order(broker: Address, topic: str, version: int, qos: int) -> None:
    async def main() -> None:
        async with (
            connect(*broker, version=version) as subscriber,
            connect(*broker, version=version) as publisher,
        ):
            await subscriber.subscribe(topic, qos=qos)
            sent = [b"%d" % n for n in range(500)]
            await publisher.publish_batch([Outgoing(topic, payload, qos) for payload in sent])
            got: list[bytes] = []
            while len(got) < 500:
                got += [m.payload for m in await subscriber.receive_batch(messages_max=500 - len(got))]
            assert got == sent

    run(main)


def test_who_is_taken_over_is_told(broker: Address, topic: str) -> None:
    async def main() -> None:
        async def first(*, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            with pytest.raises(Refused, match="0x8E"):
                await hold(task_status)
            taken_over.set()

        async def hold(task_status: trio.TaskStatus[None]) -> None:
            async with connect(*broker, client_id=topic) as client:
                task_status.started()
                await client.receive_batch()

        taken_over = trio.Event()
        async with trio.open_nursery() as nursery:
            await nursery.start(first)
            async with connect(*broker, client_id=topic):
                await taken_over.wait()

    run(main)
