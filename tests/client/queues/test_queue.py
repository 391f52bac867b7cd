"""Queues are made and pushed to by a client: ids, bounds, refusals, delay, and the login over WebSocket."""

from __future__ import annotations

import pytest
import trio

from rumq.client import QueuePush, QueueRefused, connect
from tests.client.queues.queue_broker import QueueBroker


def test_the_gateways_websocket_has_the_login_for_queues_too(broker: QueueBroker) -> None:
    """One address and one token for everything."""

    async def main() -> None:
        async with connect(f"{broker.url.replace('http', 'ws')}/mqtt", password=broker.token) as client:
            await client.queue("Socket").create(ttl_seconds=60)
            assert await client.queue("socket").push("hello") == "1@__none__"
            await client.publish("plain", "too", qos=1)

    trio.run(main)


def test_a_full_queue_refuses_and_tells_which(broker: QueueBroker) -> None:
    async def main() -> None:
        async with broker.client() as client:
            queue = client.queue("small")
            await queue.create(records_max=3)
            await queue.create(records_max=3)  # it is there already
            with pytest.raises(QueueRefused) as caught:
                await queue.create(records_max=4)
            assert caught.value.kind == "conflict"
            messages = [QueuePush(payload=b"%d" % n) for n in range(5)]
            with pytest.raises(QueueRefused, match=r"has 3 messages .* may have 3") as caught:
                await queue.push_batch(messages)
            assert caught.value.kind == "queue-full" and set(caught.value.refused) == {3, 4}
            assert caught.value.ids == ("1@__none__", "2@__none__", "3@__none__", None, None)

    trio.run(main)


def test_one_faulty_message_is_no_other_ones_fault(broker: QueueBroker) -> None:
    async def main() -> None:
        async with broker.client() as client:
            queue = client.queue("mixed-faults")
            await queue.create()
            messages = [QueuePush(payload="a"), QueuePush(payload="b", topic="no/#"), QueuePush(payload="c")]
            with pytest.raises(QueueRefused) as caught:
                await queue.push_batch(messages)
            assert caught.value.kind == "refused-pushes" and list(caught.value.refused) == [1]
            assert caught.value.refused[1].kind == "invalid" and "'#'" in caught.value.refused[1].why
            assert caught.value.ids == ("1@__none__", None, "2@__none__")
            assert await queue.push_batch([QueuePush(payload="d")], with_ids=False) == [None]
            assert await queue.push("later", delay_seconds=0.2) is None

    trio.run(main)


def test_a_label_that_needs_escaping_and_one_that_is_not_there(broker: QueueBroker) -> None:
    async def main() -> None:
        async with broker.client() as client:
            await client.queue("a b?c%2F&d").create()
            assert await client.queue("a b?c%2F&d").push("x") == "1@__none__"
            with pytest.raises(QueueRefused, match=r"push to queue 'nobody'.*create it") as caught:
                await client.queue("nobody").push("x")
            assert caught.value.kind == "not-found" and not caught.value.is_temporary
            with pytest.raises(QueueRefused) as caught:
                await client.queue("a b?c%2F&d").create(colour="red")
            assert caught.value.kind == "bad-request" and "colour" in caught.value.detail

    trio.run(main)
