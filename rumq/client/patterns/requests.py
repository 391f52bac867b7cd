"""Requests and their responses: response topic and correlation data. MQTT 5.0, 4.10.

One response topic, subscribed to once, serves all requests of a client; correlation data tells responses apart."""

import secrets
from urllib.parse import quote

import trio

from rumq.client.patterns.client_port import ClientPort
from rumq.client.session.inbound import Lane
from rumq.client.session.messages import Message, Outgoing
from rumq.errors import ClientError
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason

TOPIC_PREFIX = "rumq/response/"


class NoResponse(ClientError):
    """A request was not answered in time, or nobody subscribes to its topic."""

    def __init__(self, topic: str, why: str) -> None:
        super().__init__(topic, why)
        self.topic, self.why = topic, why

    def __str__(self) -> str:
        return f"no response to a request to {self.topic}: {self.why}"


class Requests:
    """The requests of one client that wait for a response."""

    def __init__(self, client: ClientPort) -> None:
        self._client = client
        self._lanes: dict[str, Lane] = {}
        self._subscribing = trio.Lock()
        self._sent = 0
        self._nonce = secrets.token_bytes(8)
        self._waiting: dict[bytes, Message | None] = {}  # correlation data -> the response, once it has come

    async def request(self, message: Outgoing, seconds_max: float, response_topic: str | None) -> Message:
        """raises: NoResponse, Refused, ConnectionLost; ValueError on a connection of MQTT 3.1.1"""
        if not self._client.is_mqtt5:
            raise ValueError("a request needs MQTT 5: it has response topic and correlation data")
        self._sent += 1
        correlation = self._nonce + self._sent.to_bytes(8)
        self._waiting[correlation] = None
        try:
            with trio.move_on_after(seconds_max), self._client.awaiting():
                return await self._exchange(message, correlation, response_topic or self._own_topic())
        finally:
            del self._waiting[correlation]
        raise NoResponse(message.topic, f"nothing came within {seconds_max:g} s")

    async def _exchange(self, message: Outgoing, correlation: bytes, response_topic: str) -> Message:
        lane = await self._lane(response_topic)
        properties = Properties(
            {**message.properties, "response_topic": response_topic, "correlation_data": correlation}
        )
        sent = Outgoing(message.topic, message.payload, message.qos, message.retain, properties)
        [reason] = await self._client.publish_directly([sent])
        if reason == Reason.NO_MATCHING_SUBSCRIBERS:
            raise NoResponse(message.topic, "nobody subscribes to it")
        while (response := self._waiting[correlation]) is None:
            if found := self._client.take(lane):
                self._sort(found)
            else:
                await self._client.wait_change()
        return response

    def _sort(self, responses: list[Message]) -> None:
        """Give each response to who waits for it; others come too late."""
        for response in responses:
            correlation = response.correlation_data
            if correlation is not None and correlation in self._waiting:
                self._waiting[correlation] = response
        self._client.acknowledge_some(responses)
        self._client.wake()

    async def _lane(self, response_topic: str) -> Lane:
        async with self._subscribing:
            if response_topic not in self._lanes:
                lane = self._client.add_lane(response_topic)
                try:
                    await self._client.subscribe(response_topic, qos=1)
                except BaseException:
                    self._client.remove_lane(lane)
                    raise
                self._lanes[response_topic] = lane
        return self._lanes[response_topic]

    def _own_topic(self) -> str:
        """Below what the broker gives for it (MQTT 5.0, 4.10.1), or below our own prefix."""
        prefix = self._client.connack.properties.get("response_information") or TOPIC_PREFIX
        return prefix.rstrip("/") + "/" + quote(self._client.client_id, safe="")
