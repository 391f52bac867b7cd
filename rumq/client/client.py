"""What the user of a connection does with it: publish, subscribe, take messages. MQTT 5.0 and 3.1.1.

Refuses to know sockets and reconnecting, which are the keeper's.
"""

from collections.abc import AsyncIterator, Callable, Sequence

import trio

from rumq.client.connection import Keeper
from rumq.client.packet_stream import OUTPUT_BYTES_MAX, Link
from rumq.client.messages import Message, Outgoing
from rumq.client.options import Options
from rumq.errors import ConnectionLost, Refused
from rumq.mqtt.packets import Connack, Disconnect, Packet, Publish, Subscribe, Subscription, Unsubscribe
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason


class Answers:
    """What the broker answers to some packets of ours: whoever sent them waits for all."""

    def __init__(self) -> None:
        self.left = 0
        self.found: dict[int, tuple[tuple[Reason, ...], str]] = {}

    def expect(self, number: int) -> Callable[[tuple[Reason, ...], str], None]:
        """The callback for the answer to packet `number`."""
        self.left += 1

        def done(reasons: tuple[Reason, ...], text: str) -> None:
            self.left -= 1
            self.found[number] = reasons, text

        return done

    def reason(self, number: int, what: str) -> Reason:
        """The one reason of an answer; raises Refused where it is an error."""
        reasons, text = self.found.get(number, ((), ""))  # QoS 0 has no answer, UNSUBACK of 3.1.1 no reason
        reason = reasons[0] if reasons else Reason.SUCCESS
        if reason.is_error:
            raise Refused(what, reason, text or reason.text)
        return reason


class Client:
    """A connected client, made by `rumq.client.connect`. One task may take messages; any may publish."""

    def __init__(self, keeper: Keeper, options: Options) -> None:
        self._keeper, self._options = keeper, options

    @property
    def client_id(self) -> str:
        """Ours, or the one that the broker gave."""
        return self._keeper.client_id

    @property
    def connack(self) -> Connack:
        """The broker's answer to the latest CONNECT: session_present, and its limits as properties."""
        return self._keeper.connack

    async def publish(
        self,
        topic: str,
        payload: bytes | str,
        *,
        qos: int = 0,
        retain: bool = False,
        properties: Properties | None = None,
    ) -> Reason:
        """Publish one message and wait for its acknowledgement; at QoS 0, until it is on its way.

        returns: SUCCESS, or NO_MATCHING_SUBSCRIBERS (MQTT 5)
        raises:  Refused with the broker's reason, ConnectionLost
        """
        encoded = payload.encode() if isinstance(payload, str) else payload
        message = Outgoing(topic, encoded, qos, retain, properties or Properties())
        return (await self.publish_batch([message]))[0]

    async def publish_batch(self, messages: Sequence[Outgoing]) -> list[Reason]:
        """Publish messages in order and wait once for all their acknowledgements.

        raises: Refused for the first that the broker refused, after all were answered; ConnectionLost
        cost:   as many round trips as the broker's receive maximum asks for
        """
        await trio.lowlevel.checkpoint()
        answers = Answers()
        self._keeper.publishers += 1
        try:
            self._keeper.changed.unpark_all()  # a reader that paused must go on, or no answer comes
            for number, message in enumerate(messages):
                await self._send_message(message, answers.expect(number) if message.qos else None)
            await (await self._link()).wait_unsent(OUTPUT_BYTES_MAX)
            await self._answered(answers)
        finally:
            self._keeper.publishers -= 1
        return [answers.reason(number, f"PUBLISH to {each.topic}") for number, each in enumerate(messages)]

    async def _send_message(
        self, message: Outgoing, done: Callable[[tuple[Reason, ...], str], None] | None
    ) -> None:
        link = await self._link()
        if done is None:
            await link.wait_unsent(OUTPUT_BYTES_MAX)
            link = await self._link()
            link.send(
                Publish(message.topic, message.payload, 0, message.retain, False, None, message.properties)
            )
            return
        while self._keeper.outbound.quota < 1:
            await self._keeper.changed.park()
            link = await self._link()
        packet = self._keeper.outbound.publish(message, done)
        try:
            link.send(packet)
        except BaseException:
            self._keeper.outbound.forget(packet)
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

        from_:   where a rumq broker begins: "earliest", "-1h", an RFC 3339 time, an offset of one topic
        returns: the QoS granted
        raises:  Refused, ConnectionLost
        """
        properties = Properties()
        if identifier is not None:
            properties["subscription_identifiers"] = [identifier]
        asked = topic_filter
        if from_ is not None and self._options.version == 5:
            properties["user_properties"] = [("rumq-from", from_)]
        elif from_ is not None:
            asked = f"$log/{from_}/{topic_filter}"
        wish = Subscription(asked, qos, no_local, retain_as_published, retain_handling)
        reason = await self._ask(
            lambda packet_id: Subscribe(packet_id, (wish,), properties), f"SUBSCRIBE to {topic_filter}"
        )
        self._keeper.subscriptions[topic_filter] = Subscription(
            topic_filter, qos, no_local, retain_as_published, retain_handling
        )
        return reason

    async def unsubscribe(self, topic_filter: str) -> Reason:
        """Unsubscribe, and wait for the broker's answer; what is on its way still comes."""
        reason = await self._ask(
            lambda packet_id: Unsubscribe(packet_id, (topic_filter,)), f"UNSUBSCRIBE of {topic_filter}"
        )
        self._keeper.subscriptions.pop(topic_filter, None)
        return reason

    async def messages(self) -> AsyncIterator[Message]:
        """Messages as they come, for ever. Each is acknowledged when the next one is asked for.

        raises: ConnectionLost or Refused once there is no connection and will be none
        """
        while True:
            for message in await self.receive_batch(messages_max=1):
                yield message

    async def receive_batch(self, *, messages_max: int | None = None) -> list[Message]:
        """Wait for messages and take all there are, at least one. It acknowledges those taken before.

        raises: ConnectionLost or Refused once there is no connection and will be none
        """
        await trio.lowlevel.checkpoint()
        self.acknowledge()
        while not len(self._keeper.inbound):
            if self._keeper.end is not None:
                raise self._keeper.end
            await self._keeper.changed.park()
        taken = self._keeper.inbound.take(messages_max)
        self._keeper.changed.unpark_all()
        return taken

    def acknowledge(self) -> None:
        """Acknowledge what was taken, without asking for more. Leaving `connect` in peace does the same."""
        for packet in self._keeper.inbound.acknowledge():
            if self._keeper.link is not None:
                self._keeper.link.send(packet)

    async def leave(self) -> None:
        """Acknowledge what was taken, say DISCONNECT, wait until it hangs up. raises: ConnectionLost"""
        self._keeper.leaving = True
        self._keeper.publishers += 1
        self._keeper.changed.unpark_all()
        self.acknowledge()
        if (link := self._keeper.link) is None:
            return
        link.send(Disconnect())
        with trio.move_on_after(self._options.connect_seconds_max):
            # To close with something unread would reset the connection: what is on its way would be lost.
            await link.wait_closed()
        if link.unsent_bytes:
            raise self._keeper.end or ConnectionLost("the broker did not take everything")

    async def _ask(self, made: Callable[[int], Packet], what: str) -> Reason:
        """Send a SUBSCRIBE or UNSUBSCRIBE and wait for its answer."""
        link, answers = await self._link(), Answers()
        self._keeper.publishers += 1
        try:
            self._keeper.changed.unpark_all()
            link.send(self._keeper.outbound.ask(made, answers.expect(0)))
            await self._answered(answers)
        finally:
            self._keeper.publishers -= 1
        return answers.reason(0, what)

    async def _answered(self, answers: Answers) -> None:
        while answers.left:
            if self._keeper.end is not None:
                raise self._keeper.end
            await self._keeper.changed.park()

    async def _link(self) -> Link:
        """The present link, or the next one; raises why there is none any more."""
        while (link := self._keeper.link) is None:
            if self._keeper.end is not None:
                raise self._keeper.end
            await self._keeper.changed.park()
        return link
