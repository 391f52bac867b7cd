"""Consumers through the gateway of a real broker: answers, redelivery, shares, kills. docs/guides/client.md"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import trio

from rumq.client import Channel, ChannelMessage, Client, ConnectionLost, QueuePush, QueueRefused, connect
from rumq.client.queues.gateway_channel import Given, bodies
from tests.client.queues.queue_broker import QueueBroker, until


async def take(channel: Channel, count: int) -> list[ChannelMessage]:
    found: list[ChannelMessage] = []
    with trio.fail_after(60):
        while len(found) < count:
            found += await channel.receive_batch(messages_max=count - len(found))
    return found


def test_pushed_consumed_acknowledged_and_not_seen_again(broker: QueueBroker) -> None:
    async def main() -> None:
        async with broker.client() as client:
            async with client.channel("News/Readers", create=True) as channel:
                queue = client.queue("news")
                first = await queue.push("hello", topic="Sport", key="k", headers=[("from", "desk")], content_type="t")
                second = await queue.push(b"\xff\x00")
                assert (first, second) == ("1@sport", "1@__none__")
                one, two = sorted(await take(channel, 2), key=lambda each: each.topic or "", reverse=True)
                assert (one.id, one.topic, one.payload, one.key, one.tries) == (first, "sport", b"hello", "k", 1)
                assert (one.headers, one.content_type, one.pushed_us > 0) == ((("from", "desk"),), "t", True)
                assert (two.topic, two.payload) == (None, b"\xff\x00")
                channel.acknowledge([one, two])
                await queue.push("third")
                [third] = await take(channel, 1)
                assert third.payload == b"third"
            async with client.channel("news/readers") as channel:  # the end gave back what was not answered
                [again] = await take(channel, 1)
                assert (again.id, again.tries) == (third.id, 2)
                again.acknowledge()
                assert channel.too_late == 0

    trio.run(main)


def test_what_is_rejected_comes_again_and_then_is_a_dead_letter(broker: QueueBroker) -> None:
    async def main() -> None:
        async with broker.client() as client, client.channel("failing/f", create={"tries_max": 2}) as channel:
            await client.queue("failing").push("bad")
            for tries in (1, 2):
                [message] = await take(channel, 1)
                assert message.tries == tries
                message.reject(0.0)
            async with client.channel("failing.dead/failing.dead") as dead:
                [letter] = await take(dead, 1)
                assert letter.payload == b"bad"
                letter.acknowledge()

    trio.run(main)


def test_a_message_that_is_held_longer_is_not_given_to_another(broker: QueueBroker) -> None:
    async def main() -> None:
        async with broker.client() as client:
            async with client.channel("held/h", create={"visible_seconds": 1}) as channel:
                await client.queue("held").push("slow")
                [message] = await take(channel, 1)
                message.extend(60)
                async with client.channel("held/h") as other:
                    with trio.move_on_after(2.5):
                        assert await other.receive_batch() == []
                message.acknowledge()
            assert channel.too_late == 0

    trio.run(main)


def test_consumers_share_a_channel_and_each_channel_sees_all(broker: QueueBroker) -> None:
    async def main() -> None:
        found: dict[str, list[bytes]] = {"a": [], "b": [], "other": []}

        async def consume(name: str, channel: Channel) -> None:
            async for message in channel:
                found[name].append(message.payload)
                message.acknowledge()

        async with (
            broker.client() as client,
            broker.client() as second,
            client.channel("shared/work", credit=5, create=True) as a,
            second.channel("shared/work", credit=5) as b,
            client.channel("shared/audit", create=True) as other,
            trio.open_nursery() as nursery,
        ):
            for name, channel in (("a", a), ("b", b), ("other", other)):
                nursery.start_soon(consume, name, channel)
            queue = client.queue("shared")
            ids = await queue.push_batch([QueuePush(payload=b"%d" % n) for n in range(1200)])
            assert ids == [f"{n + 1}@__none__" for n in range(1200)]
            await until(lambda: len(found["a"]) + len(found["b"]) >= 1200 and len(found["other"]) >= 1200)
            nursery.cancel_scope.cancel()
        expected = sorted(b"%d" % n for n in range(1200))
        assert sorted(found["a"] + found["b"]) == sorted(found["other"]) == expected
        assert len(found["a"]) > 50 and len(found["b"]) > 50

    trio.run(main)


CONSUMER = """
    import sys, trio
    from rumq.client import connect

    async def main():
        async with connect("127.0.0.1", int(sys.argv[1]), gateway=sys.argv[2], token=sys.argv[3]) as client:
            async with client.channel("killed/k", credit=10) as channel:
                for message in await channel.receive_batch(messages_max=1):
                    print("holds", flush=True)
                await trio.sleep_forever()

    trio.run(main)
"""


def test_what_a_killed_consumer_held_goes_to_another(broker: QueueBroker, tmp_path: Path) -> None:
    program = tmp_path / "consumer.py"
    program.write_text(textwrap.dedent(CONSUMER))

    async def main() -> None:
        async with broker.client() as client:
            await client.queue("killed").create()
            await client.queue("killed").create_channel("k", visible_seconds=3600)
            command = [sys.executable, str(program), str(broker.broker.address.port), broker.url, broker.token]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                await client.queue("killed").push_batch([QueuePush(payload=b"%d" % n) for n in range(5)])
                assert process.stdout is not None
                assert await trio.to_thread.run_sync(process.stdout.readline) == b"holds\n"
                process.kill()
            async with client.channel("killed/k") as channel:
                found = await take(channel, 5)  # far sooner than the visible time
                assert sorted(each.payload for each in found) == [b"%d" % n for n in range(5)]

    trio.run(main)


def test_clients_that_reconnect_go_on_after_the_broker_was_killed(tmp_path: Path) -> None:
    """Nothing that was pushed is lost; what was held comes again. Without `reconnect` the loss is told."""
    broker = QueueBroker(tmp_path)
    found: dict[str, set[bytes]] = {"gateway": set(), "mqtt": set(), "loses": set()}

    async def consume(name: str, channel: Channel) -> None:
        async for message in channel:
            found[name].add(message.payload)
            message.acknowledge()

    async def lose(client: Client) -> None:
        async with client.channel("lasting/loses") as channel:
            with pytest.raises(ConnectionLost):
                await consume("loses", channel)

    async def expect_loss(task_status: trio.TaskStatus[None]) -> None:
        async with broker.client() as client:
            task_status.started()
            await lose(client)

    async def main() -> None:
        async with broker.client(reconnect=True) as client, trio.open_nursery() as nursery:
            queue = client.queue("lasting")
            async with client.channel("lasting/loses", create=True):
                pass
            async with (
                client.channel("lasting/gateway", create=True) as channel,
                connect(*broker.broker.address, reconnect=True) as plain,
            ):
                await queue.create_channel("mqtt")
                nursery.start_soon(expect_loss, trio.TASK_STATUS_IGNORED)
                async with plain.channel("lasting/mqtt") as over_mqtt:
                    nursery.start_soon(consume, "mqtt", over_mqtt)
                    await queue.push("held")
                    [held] = await take(channel, 1)
                    async with trio.open_nursery() as killing:
                        for number in range(30):
                            await queue.push(b"%d" % number)
                            if number == 10:
                                killing.start_soon(trio.to_thread.run_sync, broker.kill_and_start)
                    held.acknowledge()
                    assert channel.too_late >= 1
                    nursery.start_soon(consume, "gateway", channel)
                    await until(lambda: len(found["gateway"]) == len(found["mqtt"]) == 31)
                    nursery.cancel_scope.cancel()

    try:
        trio.run(main)
    finally:
        broker.end()
    assert found["gateway"] == found["mqtt"] == {b"held", *(b"%d" % n for n in range(30))}


def test_a_program_that_is_cancelled_has_acknowledged_what_it_said(broker: QueueBroker) -> None:
    """Acknowledgements are sent in the background: the end waits for them, whoever brings it about."""

    async def main() -> None:
        async with broker.client() as client:
            with trio.CancelScope() as scope:
                async with client.channel("cancelled/c", create=True) as channel:
                    await client.queue("cancelled").push_batch([QueuePush(payload=b"%d" % n) for n in range(20)])
                    for message in await take(channel, 20):
                        message.acknowledge()
                    scope.cancel()
                    await trio.sleep_forever()
            assert scope.cancelled_caught
            await client.queue("cancelled").push("last")
            async with client.channel("cancelled/c") as channel:
                assert [each.payload for each in await take(channel, 1)] == [b"last"]

    trio.run(main)


def test_what_is_not_there_or_not_allowed_is_refused_with_the_way_out(broker: QueueBroker) -> None:
    async def main() -> None:
        async with broker.client() as client:
            with pytest.raises(QueueRefused, match="create it") as caught:
                async with client.channel("nothing/here"):
                    pass
            assert caught.value.kind == "not-found"
            await client.queue("one").create()
            await client.queue("one").create_channel("taken")
            await client.queue("two").create()
            with pytest.raises(QueueRefused, match="unique over all queues"):
                async with client.channel("two/taken"):
                    pass
            with pytest.raises(QueueRefused) as caught:
                async with client.channel("one/taken", create={"tries_max": 1}):
                    pass
            assert caught.value.kind == "conflict"
            async with client.channel("one/taken", create=True):
                pass
        async with connect(*broker.broker.address, gateway=broker.url, token="wrong") as client:
            with pytest.raises(QueueRefused) as caught:
                async with client.channel("one/taken"):
                    pass
            assert caught.value.kind == "unauthorized"

    trio.run(main)


def test_answers_go_in_batches_by_their_seconds() -> None:
    given = [Given("1", "acknowledge", None), Given("2", "reject", 5.0), Given("3", "acknowledge", None)]
    given += [Given("4", "reject", 5.0), Given("5", "reject", None), Given("6", "extend", 30.0)]
    assert bodies("me", given) == [
        {"consumer": "me", "acknowledge": ["1", "3"], "reject": ["2", "4"], "delay_seconds": 5.0},
        {"consumer": "me", "reject": ["5"], "delay_seconds": None, "extend": ["6"], "seconds": 30.0},
    ]
