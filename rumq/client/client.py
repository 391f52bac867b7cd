"""The client's public methods: publish, subscribe, receive. MQTT 5.0 and 3.1.1.

Reconnecting is `rumq.client.connection`.
"""

from collections.abc import AsyncIterator, Callable, Sequence

import trio

from rumq.client.connection import BrokerConnection
from rumq.client.messages import Message, Outgoing
from rumq.client.options import ConnectOptions
from rumq.client.outbound import Done
from rumq.client.packet_stream import OUTPUT_BYTES_MAX, PacketStream
from rumq.errors import ConnectionLost, Refused
from rumq.mqtt.packets import Connack, Disconnect, Packet, Publish, Subscribe, SubscriptionRequest, Unsubscribe
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason


class BatchAcks:
    """Answers to a batch of our packets, by their number in it; the sender waits until `left` is 0."""

    def __init__(self) -> None:
        self.left = 0
        self.found: dict[int, tuple[tuple[Reason, ...], str]] = {}

    def expect(self, number: int) -> Done:
        """The callback for the answer to packet `number`."""
        self.left += 1

        def on_answer(reasons: tuple[Reason, ...], text: str) -> None:
            self.left -= 1
            self.found[number] = reasons, text

        return on_answer

    def reason(self, number: int, what: str) -> Reason:
        """The one reason of an answer; raises Refused where it is an error."""
        reasons, text = self.found.get(number, ((), ""))  # QoS 0 has no answer, UNSUBACK of 3.1.1 no reason
        reason = reasons[0] if reasons else Reason.SUCCESS
        if reason.is_error:
            raise Refused(what, reason, text or reason.text)
        return reason


class Client:
    """A connected client, made by `rumq.client.connect`. One task may receive messages; any task may publish."""

    def __init__(self, connection: BrokerConnection, options: ConnectOptions) -> None:
        self._connection, self._options = connection, options

    @property
    def client_id(self) -> str:
        """Our client id, or the one that the broker assigned."""
        return self._connection.client_id

    @property
    def connack(self) -> Connack:
        """The broker's answer to the latest CONNECT: session_present, and its limits as properties."""
        return self._connection.connack

    async def publish(
        self,
        topic: str,
        payload: bytes | str,
        *,
        qos: int = 0,
        retain: bool = False,
        properties: Properties | None = None,
    ) -> Reason:
        """Publish one message and wait for its acknowledgement; at QoS 0, until it is queued for sending.

        returns: SUCCESS, or NO_MATCHING_SUBSCRIBERS (MQTT 5)
        raises:  Refused with the broker's reason, ConnectionLost
        """
        encoded = payload.encode() if isinstance(payload, str) else payload
        message = Outgoing(topic, encoded, qos, retain, properties or Properties())
        return (await self.publish_batch([message]))[0]

    async def publish_batch(self, messages: Sequence[Outgoing]) -> list[Reason]:
        """Publish messages in order and wait once for all their acknowledgements.

        raises: Refused for the first that the broker refused, after all were answered; ConnectionLost
        cost:   one round trip for each receive maximum of messages
        """
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
        self._connection.publishers += 1
        try:
            self._connection.changed.unpark_all()  # a paused reader must resume, or no answer arrives
            for number, message in enumerate(messages):
                await self._send_message(message, answers.expect(number) if message.qos else None)
            await (await self._stream()).wait_unsent(OUTPUT_BYTES_MAX)
            await self._wait_answered(answers)
        finally:
            self._connection.publishers -= 1
        return answers

    async def _send_message(self, message: Outgoing, on_answer: Done | None) -> None:
        stream = await self._stream()
        if on_answer is None:
            await stream.wait_unsent(OUTPUT_BYTES_MAX)
            stream = await self._stream()
            stream.send(Publish(message.topic, message.payload, 0, message.retain, False, None, message.properties))
            return
        while self._connection.outbound.quota < 1:
            await self._connection.changed.park()
            stream = await self._stream()
        packet = self._connection.outbound.publish(message, on_answer)
        try:
            stream.send(packet)
        except BaseException:
            self._connection.outbound.withdraw(packet)
            raise

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
    ) -> Reason:
        """Subscribe, and wait for the broker's answer; messages come by `messages()`.

        from_:   where a rumq broker begins the replay: "earliest", "-1h", an RFC 3339 time, an offset of one topic
        returns: the QoS granted
        raises:  Refused, ConnectionLost
        """
        properties = Properties()
        if identifier is not None:
            properties["subscription_identifiers"] = [identifier]
        sent_filter = topic_filter
        if from_ is not None and self._options.version == 5:
            properties["user_properties"] = [("rumq-from", from_)]
        elif from_ is not None:
            sent_filter = f"$log/{from_}/{topic_filter}"
        subscription = SubscriptionRequest(sent_filter, qos, no_local, retain_as_published, retain_handling)
        reason = await self._request(
            lambda packet_id: Subscribe(packet_id, (subscription,), properties),
            f"SUBSCRIBE to {topic_filter}",
        )
        self._connection.subscriptions[topic_filter] = SubscriptionRequest(
            topic_filter, qos, no_local, retain_as_published, retain_handling
        )
        return reason

    async def unsubscribe(self, topic_filter: str) -> Reason:
        """Unsubscribe, and wait for the answer; messages in flight still arrive."""
        reason = await self._request(
            lambda packet_id: Unsubscribe(packet_id, (topic_filter,)), f"UNSUBSCRIBE of {topic_filter}"
        )
        self._connection.subscriptions.pop(topic_filter, None)
        return reason

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
        self.acknowledge()
        while not len(self._connection.inbound):
            if self._connection.failure is not None:
                raise self._connection.failure
            await self._connection.changed.park()
        messages = self._connection.inbound.pop(messages_max)
        self._connection.changed.unpark_all()
        return messages

    def acknowledge(self) -> None:
        """Acknowledge the messages returned so far; leaving the `connect` context without an error does so too."""
        for packet in self._connection.inbound.acknowledge():
            if self._connection.stream is not None:
                self._connection.stream.send(packet)

    async def leave(self) -> None:
        """Acknowledge, send DISCONNECT, wait until the broker closes. raises: ConnectionLost"""
        self._connection.leaving = True
        self._connection.publishers += 1
        self._connection.changed.unpark_all()
        self.acknowledge()
        if (stream := self._connection.stream) is None:
            return
        stream.send(Disconnect())
        with trio.move_on_after(self._options.connect_seconds_max):
            # Closing with unread input resets the connection, and unsent packets would be lost.
            await stream.wait_closed()
        if stream.unsent_bytes:
            raise self._connection.failure or ConnectionLost("the broker did not accept everything")

    async def _request(self, build: Callable[[int], Packet], what: str) -> Reason:
        """Send a SUBSCRIBE or UNSUBSCRIBE and wait for its answer."""
        stream, answers = await self._stream(), BatchAcks()
        self._connection.publishers += 1
        try:
            self._connection.changed.unpark_all()
            stream.send(self._connection.outbound.request(build, answers.expect(0)))
            await self._wait_answered(answers)
        finally:
            self._connection.publishers -= 1
        return answers.reason(0, what)

    async def _wait_answered(self, answers: BatchAcks) -> None:
        while answers.left:
            if self._connection.failure is not None:
                raise self._connection.failure
            await self._connection.changed.park()

    async def _stream(self) -> PacketStream:
        """The open stream, or the next one; raises the final error when there will be none."""
        while (stream := self._connection.stream) is None:
            if self._connection.failure is not None:
                raise self._connection.failure
            await self._connection.changed.park()
        return stream
