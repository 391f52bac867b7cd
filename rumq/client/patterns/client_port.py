"""What patterns need of a client."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from rumq.client.session.inbound import Lane
from rumq.client.session.messages import Message, Outgoing
from rumq.mqtt.packets import Connack
from rumq.mqtt.reasons import Reason


class ClientPort(Protocol):
    """A connected client. Lanes: see `rumq.client.session.inbound`."""

    @property
    def client_id(self) -> str: ...
    @property
    def connack(self) -> Connack: ...
    @property
    def is_mqtt5(self) -> bool: ...

    async def publish_directly(self, messages: Sequence[Outgoing]) -> list[Reason]: ...

    async def subscribe(self, topic_filter: str, *, qos: int = 0, user_properties: Any = ()) -> Reason: ...

    async def unsubscribe(self, topic_filter: str) -> Reason: ...

    def add_lane(self, topic_filter: str) -> Lane: ...

    def remove_lane(self, lane: Lane) -> None: ...

    def take(self, lane: Lane | None = None, messages_max: int | None = None) -> list[Message]:
        """What has arrived in a lane; acknowledges nothing."""

    async def wait_change(self) -> None:
        """Until anything has changed. raises: ConnectionLost, Refused once there is no connection any more"""

    def wake(self) -> None:
        """Wake every task in `wait_change`."""

    def acknowledge_some(self, messages: Iterable[Message]) -> None: ...

    def awaiting(self) -> AbstractContextManager[None]:
        """While an answer is expected, reading does not pause."""

    async def leave(self, *, end_session: bool = False) -> None: ...

    def stop(self) -> None:
        """Close the connection at once, without DISCONNECT."""


# Another connection of the same user to the same broker: takes options that differ.
OpenAnother = Callable[[dict[str, Any]], Awaitable[ClientPort]]


async def receive_from(client: ClientPort, lane: Lane | None = None, messages_max: int | None = None) -> list[Message]:
    """Wait for at least one message of a lane. raises: as `wait_change`"""
    while not (messages := client.take(lane, messages_max)):
        await client.wait_change()
    return messages
