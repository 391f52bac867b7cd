"""The client's public methods: publish, subscribe, receive, and the patterns of services. MQTT 5.0 and 3.1.1.

Reconnecting is `rumq.client.session.connection`.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

import trio

from rumq.client.outbox.outbox import ClientOutbox
from rumq.client.patterns.client_port import OpenAnother
from rumq.client.patterns.replay import ReplayRecords
from rumq.client.patterns.requests import Requests
from rumq.client.patterns.responder import Handler, respond
from rumq.client.queues.gateway_channel import consume_through_gateway
from rumq.client.queues.gateway_requests import GatewayRequests
from rumq.client.queues.mqtt_channel import CREDIT, consume_over_mqtt
from rumq.client.queues.queue import Queue, need_gateway
from rumq.client.queues.queue_messages import Channel
from rumq.client.session.answers import BatchAcks
from rumq.client.session.connection import BrokerConnection
from rumq.client.session.inbound import Lane
from rumq.client.session.messages import Message, Outgoing
from rumq.client.session.options import ConnectOptions, reconnect_policy
from rumq.client.session.outbound import Done
from rumq.client.session.packet_stream import OUTPUT_BYTES_MAX, PacketStream, short_form
from rumq.client.session.reauthentication import reauthenticate
from rumq.errors import ConnectionLost
from rumq.mqtt.packets import Connack, Disconnect, Packet, Publish, Subscribe, SubscriptionRequest, Unsubscribe
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason

UserProperties = Sequence[tuple[str, str]]


class Client:
    """A connected client, made by `rumq.client.connect`. One task may receive messages; any task may publish."""

    def __init__(
        self,
        connection: BrokerConnection, options: ConnectOptions, another: OpenAnother,
        outbox: ClientOutbox | None = None, gateway: GatewayRequests | None = None,
    ) -> None:  # fmt: skip
        """another: opens a connection of the same user to the same broker, with options that differ"""
        self._connection, self._options, self._another = connection, options, another
        self._outbox, self._gateway = outbox, gateway
        self._taken: list[Message] = []  # returned, and acknowledged by the next call
        self._requests = Requests(self)

    @property
    def client_id(self) -> str:
        """Our client id, or the one that the broker assigned."""
        return self._connection.client_id

    @property
    def connack(self) -> Connack:
        """The broker's answer to the latest CONNECT: session_present, and its limits as properties."""
        return self._connection.connack

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection at this moment."""
        return self._connection.stream is not None

    @property
    def is_mqtt5(self) -> bool:
        return self._options.version == 5

    @property
    def outbox(self) -> ClientOutbox:
        """What is published and not yet confirmed, of `connect(store=...)`. raises: ValueError without one"""
        if self._outbox is None:
            raise ValueError("this client has no outbox: connect(store=PATH)")
        return self._outbox

    # --- publish

    async def publish(
        self,
        topic: str,
        payload: bytes | str,
        *,
        qos: int = 0,
        retain: bool = False,
        properties: Properties | None = None,
    ) -> Reason:
        """Publish one message and wait for its acknowledgement; at QoS 0, until it is queued for sending; with an
        outbox, until it is on disk there, and it goes to the broker with QoS 2.

        returns: SUCCESS, or NO_MATCHING_SUBSCRIBERS (MQTT 5)
        raises:  Refused with the broker's reason, ConnectionLost; with an outbox OutboxFull, OutboxFailed
        """
        encoded = payload.encode() if isinstance(payload, str) else payload
        message = Outgoing(topic, encoded, qos, retain, properties or Properties())
        return (await self.publish_batch([message]))[0]

    async def publish_batch(self, messages: Sequence[Outgoing]) -> list[Reason]:
        """Publish messages in order and wait once for all their acknowledgements.

        raises: Refused for the first that the broker refused, after all were answered; ConnectionLost
        cost:   one round trip for each receive maximum of messages
        """
        if self._outbox is not None:
            await self._outbox.publish(self._with_context(messages))
            return [Reason.SUCCESS] * len(messages)
        return await self.publish_directly(messages)

    async def publish_directly(self, messages: Sequence[Outgoing]) -> list[Reason]:
        """As `publish_batch`, past the outbox if there is one: for what is worth nothing later."""
        answers = await self._publish(messages)
        return [answers.reason(number, f"PUBLISH to {each.topic}") for number, each in enumerate(messages)]

    async def publish_each(self, messages: Sequence[Outgoing]) -> dict[int, tuple[Reason, str]]:
        """As `publish_batch`; returns those that the broker refused: number -> reason and what it said.

        raises: ConnectionLost"""
        answers = await self._publish(messages)
        found = {number: (reasons[0], text) for number, (reasons, text) in answers.found.items() if reasons}
        return {number: answer for number, answer in found.items() if answer[0].is_error}

    async def _publish(self, messages: Sequence[Outgoing]) -> BatchAcks:
        await trio.lowlevel.checkpoint()
        answers = BatchAcks()
        with self.awaiting():
            for number, message in enumerate(self._with_context(messages)):
                await self._send_message(message, answers.expect(number) if message.qos else None)
            await (await self._stream()).wait_unsent(OUTPUT_BYTES_MAX)
            await self._wait_answered(answers)
        return answers

    def _with_context(self, messages: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """The messages with the context of a trace as user properties, except those that have one."""
        if self._options.trace is None or not self.is_mqtt5 or not (context := self._options.trace()):
            return messages
        return [message.with_user_properties(context) for message in messages]

    async def _send_message(self, message: Outgoing, on_answer: Done | None) -> None:
        connection = self._connection
        stream = await self._stream()
        if on_answer is None:
            await stream.wait_unsent(OUTPUT_BYTES_MAX)
            stream = await self._stream()
            packet = Publish(message.topic, message.payload, 0, message.retain, False, None, message.properties)
            self._send_publish(stream, packet)
            return
        while connection.outbound.quota < 1:
            await connection.changed.park()
            stream = await self._stream()
        packet = connection.outbound.publish(message, on_answer)
        try:
            self._send_publish(stream, packet)
        except BaseException:
            connection.outbound.withdraw(packet)
            raise

    def _send_publish(self, stream: PacketStream, packet: Publish) -> None:
        """raises: Refused for one that is too large"""
        sent = self._connection.outbound.aliases.apply(packet)
        try:
            stream.send(sent)
        except BaseException:
            self._connection.outbound.aliases.withdraw(sent)
            raise

    # --- subscribe

    async def subscribe(
        self,
        topic_filter: str,
        *,
        qos: int = 0,
        from_: str | None = None,
        no_local: bool = False,
        retain_as_published: bool = False,
        retain_handling: int = 0,
        identifier: int | None = None,
        user_properties: UserProperties = (),
    ) -> Reason:
        """Subscribe, and wait for the broker's answer; messages come by `messages()`.

        from_:   where a rumq broker begins the replay: "earliest", "-1h", an RFC 3339 time, an offset of one topic
        no_local, retain_as_published, retain_handling, identifier, user_properties: MQTT 5.0, 3.8
        returns: the QoS granted
        raises:  Refused, ConnectionLost
        """
        properties, pairs = Properties(), list(user_properties)
        if identifier is not None:
            properties["subscription_identifiers"] = [identifier]
        sent_filter = topic_filter
        if from_ is not None and self.is_mqtt5:
            pairs.append(("rumq-from", from_))
        elif from_ is not None:
            sent_filter = f"$log/{from_}/{topic_filter}"
        if pairs:
            properties["user_properties"] = pairs
        subscription = SubscriptionRequest(sent_filter, qos, no_local, retain_as_published, retain_handling)
        reason = await self._request(
            lambda packet_id: Subscribe(packet_id, (subscription,), properties),
            f"SUBSCRIBE to {topic_filter}",
        )
        self._connection.subscriptions.add(
            SubscriptionRequest(topic_filter, qos, no_local, retain_as_published, retain_handling), identifier
        )
        return reason

    async def unsubscribe(self, topic_filter: str) -> Reason:
        """Unsubscribe, and wait for the answer; messages in flight still arrive."""
        reason = await self._request(
            lambda packet_id: Unsubscribe(packet_id, (topic_filter,)), f"UNSUBSCRIBE of {topic_filter}"
        )
        self._connection.subscriptions.remove(topic_filter)
        return reason

    # --- receive

    async def messages(self) -> AsyncIterator[Message]:
        """Iterate over messages without end. Each is acknowledged when the next one is requested.

        raises: ConnectionLost or Refused once the connection is lost and is not reopened
        """
        while True:
            for message in await self.receive_batch(messages_max=1):
                yield message

    async def receive_batch(self, *, messages_max: int | None = None) -> list[Message]:
        """Wait for at least one message and return all that have arrived; acknowledges those returned before.

        raises: ConnectionLost or Refused once the connection is lost and is not reopened
        """
        await trio.lowlevel.checkpoint()
        if not self._options.manual_acknowledge:
            self.acknowledge()
        while not len(self._connection.inbound):
            await self.wait_change()
        messages = self.take(None, messages_max)
        if not self._options.manual_acknowledge:
            self._taken = messages
        return messages

    def acknowledge(self, message: Message | None = None) -> None:
        """Acknowledge one message, or (None) all that were returned so far.

        Leaving the `connect` context without an error acknowledges what was returned, too, unless the connection has
        manual_acknowledge: there only what is acknowledged here counts, in whatever order it is done. An
        acknowledgement is sent once all earlier messages have theirs (MQTT 5.0, 4.6)."""
        if message is not None:
            self.acknowledge_some([message])
            return
        messages, self._taken = self._taken, []
        self.acknowledge_some(messages)

    # --- patterns

    async def request(
        self,
        topic: str,
        payload: bytes | str,
        timeout: float = 10.0,
        *,
        qos: int = 1,
        properties: Properties | None = None,
        response_topic: str | None = None,
    ) -> Message:
        """Publish a request and wait for its response (MQTT 5).

        timeout: seconds, from the beginning; response_topic: where the response is expected [one of this client]
        raises:  NoResponse, Refused, ConnectionLost
        """
        encoded = payload.encode() if isinstance(payload, str) else payload
        message = Outgoing(topic, encoded, qos, False, properties or Properties())
        return await self._requests.request(message, timeout, response_topic)

    async def respond(
        self,
        topic_filter: str,
        handler: Handler,
        *,
        qos: int = 1,
        concurrent_max: int = 16,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Answer requests until cancelled: `nursery.start(client.respond, "sum/#", add)`.

        handler: an async function from a message to the payload of its response, None for none
        concurrent_max: how many it works on at once. Its messages do not come by `messages()`
        raises:  Refused, ConnectionLost, and what the handler raises
        """
        await respond(self, topic_filter, handler, qos=qos, concurrent_max=concurrent_max, task_status=task_status)

    def replay(self, topic_filter: str, start: str = "earliest", *, follow: bool = False) -> AsyncIterator[Message]:
        """Iterate over the records of a rumq broker's log, each with topic, offset, lsn, partition and time.

        start:   "earliest", "-1h", an RFC 3339 time, an offset of one topic
        follow:  go on with live messages; otherwise it ends where the log ended when it began
        raises:  Refused, ConnectionLost. Has a connection of its own
        """
        found = ReplayRecords(self._another, topic_filter, start, follow=follow)
        return found.records(reconnect_policy(self._options))

    def queue(self, label: str) -> Queue:
        """A queue of a rumq broker, to make and to push to. raises: ValueError for a client that knows no gateway"""
        return Queue(need_gateway(self._gateway, "queues are pushed to"), label)

    def channel(
        self, name: str, topic: str = "#", *, credit: int = CREDIT, create: bool | Mapping[str, Any] = False
    ) -> AbstractAsyncContextManager[Channel]:
        """Consume a channel of a queue of a rumq broker: `async with client.channel("news/comments") as channel`.

        name:    LABEL/CHANNEL; credit: messages held unanswered; topic: what a new one sees, or MQTT is to give
        create:  make it, and its queue, where there is none: True, or settings that it then has: {"tries_max": 3}
        raises:  Refused, QueueRefused, ConnectionLost. Its end gives back what is not acknowledged
        """
        if self._gateway is not None:
            return consume_through_gateway(self._gateway, name, topic, credit, create)
        if create is not False:
            need_gateway(None, "channels are made")
        return consume_over_mqtt(self._another, name, topic, credit)

    async def reauthenticate(self) -> None:
        """Log in again on this connection, with the `login` that it began with (MQTT 5.0, 4.12.1).

        raises: Refused, LoginFailed, ConnectionLost; ValueError for a connection without such a login"""
        with self.awaiting():
            await reauthenticate(self._connection, self._options.login, await self._stream())

    # --- for patterns: `rumq.client.patterns.client_port`

    def add_lane(self, topic_filter: str) -> Lane:
        return self._connection.inbound.add_lane(topic_filter)

    def remove_lane(self, lane: Lane) -> None:
        self._connection.inbound.remove_lane(lane)

    def take(self, lane: Lane | None = None, messages_max: int | None = None) -> list[Message]:
        messages = self._connection.inbound.pop(messages_max, lane)
        if messages:
            self._connection.changed.unpark_all()
        return messages

    async def wait_change(self) -> None:
        if self._connection.failure is not None:
            raise self._connection.failure
        await self._connection.changed.park()

    def wake(self) -> None:
        self._connection.changed.unpark_all()

    def acknowledge_some(self, messages: Iterable[Message]) -> None:
        acknowledgements = b"".join(map(short_form, self._connection.inbound.acknowledge(messages)))
        if acknowledgements and self._connection.stream is not None:
            self._connection.stream.send_packets(acknowledgements)

    @contextmanager
    def awaiting(self) -> Iterator[None]:
        self._connection.publishers += 1
        try:
            self._connection.changed.unpark_all()  # a paused reader must resume, or no answer arrives
            yield
        finally:
            self._connection.publishers -= 1

    async def leave(self, *, end_session: bool = False) -> None:
        """Acknowledge, send DISCONNECT, wait until the broker closes. raises: ConnectionLost"""
        self._connection.leaving = True
        self._connection.publishers += 1
        self._connection.changed.unpark_all()
        if not self._options.manual_acknowledge:
            self.acknowledge()
        if (stream := self._connection.stream) is None:
            return
        ends = end_session and self.is_mqtt5
        stream.send(Disconnect(properties=Properties(session_expiry_interval=0) if ends else Properties()))
        with trio.move_on_after(self._options.connect_seconds_max):
            # Closing with unread input resets the connection, and unsent packets would be lost.
            await stream.wait_closed()
        if stream.unsent_bytes:
            raise self._connection.failure or ConnectionLost("the broker did not accept everything")

    def stop(self) -> None:
        self._connection.scope.cancel()

    async def _request(self, build: Callable[[int], Packet], what: str) -> Reason:
        """Send a SUBSCRIBE or UNSUBSCRIBE and wait for its answer."""
        stream, answers = await self._stream(), BatchAcks()
        with self.awaiting():
            stream.send(self._connection.outbound.request(build, answers.expect(0)))
            await self._wait_answered(answers)
        return answers.reason(0, what)

    async def _wait_answered(self, answers: BatchAcks) -> None:
        while answers.left:
            await self.wait_change()

    async def _stream(self) -> PacketStream:
        """The open stream, or the next one; raises the final error when there will be none."""
        while (stream := self._connection.stream) is None:
            await self.wait_change()
        return stream
