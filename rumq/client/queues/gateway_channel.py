"""A consumer of a channel through the gateway: messages as server-sent events, answers in batches beside them.

A consumer is of one gateway. When its stream is lost another one begins, at the next address: what was held comes
again. docs/reference/gateway.md, "Consuming"."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import trio

from rumq.client.queues.gateway_requests import GatewayRequests, Unsent
from rumq.client.queues.mqtt_channel import CREDIT, parse_channel
from rumq.client.queues.queue import ensure_channel
from rumq.client.queues.queue_errors import QueueRefused
from rumq.client.queues.queue_messages import ChannelMessage
from rumq.client.session.back_off import BackOff
from rumq.errors import ClientError, ConnectionLost

ANSWERS_MAX = 1_000  # of a request
PAUSE_SECONDS = 0.1  # after an answer that did not arrive
LEAVE_SECONDS_MAX = 5.0  # for the last answers


class EventMessage(msgspec.Struct):
    """As the gateway tells it."""

    id: str
    payload: str
    encoding: str
    tries: int
    pushed_us: int
    topic: str | None = None
    key: str | None = None
    headers: list[tuple[str, str]] = []
    content_type: str = ""


class HeldBy(NamedTuple):
    """A consumer: url: of its gateway; name: there"""

    url: str
    name: str


class Given(NamedTuple):
    """An answer to be sent."""

    message_id: str
    what: str
    seconds: float | None


class GatewayChannel:
    def __init__(self, requests: GatewayRequests, label: str, channel_id: str, credit: int) -> None:
        self._requests, self._credit, self._label = requests, credit, label
        self._path = f"channels/{quote(channel_id, safe='')}"
        self._what = f"consuming {label}/{channel_id}"
        self._arrived: deque[ChannelMessage] = deque()
        self._consumer: HeldBy | None = None
        self._answers: list[Given] = []
        self._is_sending = False
        self._reading, self._sending = trio.CancelScope(), trio.CancelScope(shield=True)
        self._failure: ClientError | None = None
        self._changed = trio.lowlevel.ParkingLot()
        self.too_late = 0

    def __aiter__(self) -> AsyncIterator[ChannelMessage]:
        return self._each()

    async def _each(self) -> AsyncIterator[ChannelMessage]:
        while True:
            for message in await self.receive_batch(messages_max=1):
                yield message

    async def receive_batch(self, *, messages_max: int | None = None) -> list[ChannelMessage]:
        await trio.lowlevel.checkpoint()
        while not self._arrived:
            if self._failure is not None:
                raise self._failure
            await self._changed.park()
        count = len(self._arrived) if messages_max is None else min(messages_max, len(self._arrived))
        return [self._arrived.popleft() for _ in range(count)]

    def acknowledge(self, messages: Sequence[ChannelMessage]) -> None:
        for each in messages:
            self._answer(each, "acknowledge", None)

    def _answer(self, message: ChannelMessage, what: str, seconds: float | None) -> None:
        if message.source is not self._consumer:
            self.too_late += 1  # its consumer has ended: it comes again
            return
        self._answers.append(Given(message.id, what, seconds))
        self._changed.unpark_all()

    # Reading

    async def read(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until `end`, or refused for good; started once there is a consumer. raises before that: ClientError

        From then on a cancellation ends the context's body first, whose last answers need the consumer."""
        back_off, failures = self._requests.back_off(), 0
        with self._reading:
            while True:
                url, begun = self._requests.url, trio.current_time()
                try:
                    async with self._requests.events(
                        url, f"{self._path}/messages", self._what, credit=self._credit, queue=self._label
                    ) as events:
                        async for name, data in events:
                            self._take(url, name, data)
                            failures = 0
                            if not self._reading.shield:
                                self._reading.shield = True
                                task_status.started()
                    lost: ClientError | Unsent = ConnectionLost(f"{url} ended the stream")
                except (ClientError, Unsent) as fault:
                    lost = fault
                self._lose()
                self._requests.avoid(url)
                failures += 1
                if back_off is not None:
                    back_off.connected_for(trio.current_time() - begun)
                pause = self._pause(lost, failures, back_off)
                if pause is None:
                    self._failure = ConnectionLost(lost.why) if isinstance(lost, Unsent) else lost
                    self._changed.unpark_all()
                    if not self._reading.shield:
                        raise self._failure
                    return
                await trio.sleep(pause)

    def _pause(self, lost: ClientError | Unsent, failures: int, back_off: BackOff | None) -> float | None:
        """Seconds until the next attempt; None: no more."""
        if isinstance(lost, Unsent) and failures < self._requests.count:
            return 0.0
        if back_off is None or (isinstance(lost, QueueRefused) and not lost.is_temporary):
            return None
        return back_off.maybe_pause()

    def end(self) -> None:
        self._reading.cancel()
        self._sending.cancel()

    def _take(self, url: str, name: str, data: bytes) -> None:
        """An event of the stream. raises: QueueRefused where it says why it ends"""
        if name == "consumer":
            self._consumer = HeldBy(url, msgspec.json.decode(data)["consumer"])
            self._answers.clear()
        elif name == "end":
            problem = msgspec.json.decode(data)
            raise QueueRefused(self._what, str(problem["type"]).rpartition("#")[2], str(problem["detail"]))
        elif name == "message":
            found = msgspec.json.decode(data, type=EventMessage)
            self._arrived.append(self._message(found))
            self._changed.unpark_all()

    def _message(self, found: EventMessage) -> ChannelMessage:
        if found.encoding == "base64":
            payload = msgspec.json.decode(msgspec.json.encode(found.payload), type=bytes)
        else:
            payload = found.payload.encode()
        return ChannelMessage(
            payload=payload, topic=found.topic, id=found.id, tries=found.tries, key=found.key,
            headers=tuple(found.headers), content_type=found.content_type, pushed_us=found.pushed_us,
            answer=self._answer, source=self._consumer,
        )  # fmt: skip

    def _lose(self) -> None:
        """The consumer has ended: what it had is given out again, whatever is answered now."""
        self._consumer = None
        self._arrived.clear()
        self.too_late += len(self._answers)
        self._answers.clear()
        self._changed.unpark_all()

    # Answering

    async def send_answers(self) -> None:
        """Until `end`. Those that come meanwhile go with the next request."""
        with self._sending:
            while True:
                while not self._answers or self._consumer is None:
                    await self._changed.park()
                consumer, batch = self._consumer, self._answers[:ANSWERS_MAX]
                del self._answers[: len(batch)]
                self._is_sending = True
                for body in bodies(consumer.name, batch):
                    await self._send(consumer, body)
                self._is_sending = False
                self._changed.unpark_all()

    async def _send(self, consumer: HeldBy, body: Mapping[str, Any]) -> None:
        """As long as there is that consumer: an answer twice does no harm."""
        count = sum(len(body.get(what, ())) for what in ("acknowledge", "reject", "extend"))
        while True:
            try:
                found = await self._requests.ask_one(
                    consumer.url, "POST", f"{self._path}/acknowledgements", body, self._what
                )
                self.too_late += len(found["not_held"])
                return
            except QueueRefused as fault:
                if not fault.is_temporary:
                    self.too_late += count
                    return
            except (ConnectionLost, Unsent):
                pass
            if self._consumer is not consumer:
                self.too_late += count
                return
            await trio.sleep(PAUSE_SECONDS)

    async def wait_answered(self) -> None:
        """Until all answers so far are with the gateway, or came too late."""
        while (self._answers or self._is_sending) and self._failure is None:
            await self._changed.park()


def bodies(consumer: str, answers: Sequence[Given]) -> list[dict[str, Any]]:
    """Requests for answers in their order. One has one delay of rejections and one time of extensions."""
    found: list[dict[str, Any]] = []
    for message_id, what, seconds in answers:
        body = found[-1] if found else None
        name = {"reject": "delay_seconds", "extend": "seconds"}.get(what)
        if body is None or (name is not None and what in body and body.get(name) != seconds):
            body = {"consumer": consumer}
            found.append(body)
        if name is not None:
            body[name] = seconds
        body.setdefault(what, []).append(message_id)
    return found


@asynccontextmanager
async def consume_through_gateway(
    requests: GatewayRequests, name: str, topic: str, credit: int, create: bool | Mapping[str, Any]
) -> AsyncIterator[GatewayChannel]:
    """raises: QueueRefused, ConnectionLost; ValueError for a name that is none"""
    label, channel_id = parse_channel(name)
    if create is not False:
        await ensure_channel(requests, label, channel_id, None if topic == "#" else topic, create)
    channel = GatewayChannel(requests, label, channel_id, credit)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(channel.read)
            nursery.start_soon(channel.send_answers)
            try:
                yield channel
            finally:
                with trio.move_on_after(LEAVE_SECONDS_MAX, shield=True):
                    await channel.wait_answered()
                channel.end()
    except BaseExceptionGroup as group:
        # The tasks raise nothing once they have started: the group holds the error of the context's body.
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from group.exceptions[0].__cause__
        raise


__all__ = ["CREDIT", "GatewayChannel", "consume_through_gateway"]
