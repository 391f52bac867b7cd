"""Answers requests: each message of a filter to a handler, what that returns to the response topic. MQTT 5.0, 4.10."""

from collections.abc import Awaitable, Callable

import trio

from rumq.client.patterns.client_port import ClientPort, receive_from
from rumq.client.session.messages import Message, Outgoing
from rumq.mqtt.properties import Properties
from rumq.mqtt.topics import parse_share

# Takes a request and returns the payload of the response; None: no response.
Handler = Callable[[Message], Awaitable[bytes | str | None]]

FAREWELL_SECONDS_MAX = 1.0


async def respond(
    client: ClientPort, topic_filter: str, handler: Handler, *, qos: int = 1, concurrent_max: int = 16,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:  # fmt: skip
    """Serve until cancelled. A request is acknowledged when its response is sent: of a responder that dies, another
    one gets it (with a shared subscription), or the next one. What the handler raises ends it.

    raises: Refused, ConnectionLost"""
    share = parse_share(topic_filter)
    lane = client.add_lane(share[1] if share is not None else topic_filter)
    try:
        await client.subscribe(topic_filter, qos=qos)
        task_status.started()
        free = trio.Semaphore(concurrent_max)
        async with trio.open_nursery() as nursery:
            while True:
                await free.acquire()
                [request] = await receive_from(client, lane, 1)
                nursery.start_soon(answer, client, handler, request, free)
    finally:
        with trio.move_on_after(FAREWELL_SECONDS_MAX, shield=True):
            try:
                await client.unsubscribe(topic_filter)
            finally:
                client.remove_lane(lane)


async def answer(client: ClientPort, handler: Handler, request: Message, free: trio.Semaphore) -> None:
    response = await handler(request)
    if response is not None and (topic := request.response_topic) is not None:
        payload = response.encode() if isinstance(response, str) else response
        properties = Properties()
        if (correlation := request.correlation_data) is not None:
            properties["correlation_data"] = correlation
        await client.publish_directly([Outgoing(topic, payload, max(request.qos, 1), False, properties)])
    client.acknowledge_some([request])
    free.release()
