"""Dead letters: messages that failed too often go to queue `<label>.dead`, and back when somebody has seen to it.

docs/reference/queues.md, "Dead letters"."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rumq.client import Outgoing
from rumq.queues.link.connections import Connections, refusal_of
from rumq.queues.rules.channel_state import ChannelEntry
from rumq.queues.rules.definitions import ChannelDefinition, QueueDefinition
from rumq.queues.rules.messages import Delivered, Push
from rumq.queues.rules.names import dead_label, message_topic
from rumq.queues.rules.packets import ORIGIN, TRIES, properties_of

KEEP_SECONDS = 7 * 86400  # where the queue of dead letters has no definition


class DeadLetters:
    def __init__(self, connections: Connections, queue_of: Callable[[str], QueueDefinition | None]) -> None:
        self._connections, self._queue_of = connections, queue_of
        self.dropped = 0  # of channels that keep none

    async def bury(self, channel: ChannelDefinition, dead: Sequence[ChannelEntry]) -> None:
        """Publish them all, or raise: some of them may be published then, and come twice. raises: QueueError"""
        if channel.dead_letters == "drop":
            self.dropped += len(dead)
            return
        label = dead_label(channel.label)
        queue = self._queue_of(label)
        seconds = KEEP_SECONDS if queue is None else queue.ttl_seconds
        letters = [letter(channel.label, label, each, seconds) for each in dead]
        refused = await self._connections.publish(None, letters)
        for reason, why in refused.values():
            raise refusal_of(reason, why)


def letter(label: str, dead: str, entry: ChannelEntry, seconds: int) -> Outgoing:
    """A dead letter of its own origin stays that of its first queue."""
    message = entry.message
    origin = message.origin or f"{label}/{message.id}"
    push = Push(payload=message.payload, key=message.key, headers=message.headers, content_type=message.content_type)
    properties = properties_of(push, seconds, (ORIGIN, origin), (TRIES, str(entry.failed + message.dead_tries)))
    return Outgoing(message_topic(dead, message.id.topic), message.payload, 1, False, properties)


def revived(message: Delivered, queue: QueueDefinition) -> Outgoing:
    """A dead letter as a message of the queue that it came from: with a new id, and no tries."""
    push = Push(payload=message.payload, key=message.key, headers=message.headers, content_type=message.content_type)
    properties = properties_of(push, queue.ttl_seconds)
    return Outgoing(message_topic(queue.label, message.id.topic), message.payload, 1, False, properties)
