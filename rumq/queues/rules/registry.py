"""Which queues and channels there are, as their retained definitions add up. docs/reference/queues.md, "Definitions"

Applies what comes in the log's order; what is no definition is skipped and counted."""

from __future__ import annotations

from rumq.queues.rules import definitions as d
from rumq.queues.rules.names import CONFIG


class QueueRegistry:
    """queues: by label; channels: by id; ids_of: of a queue, by label; bad: definitions that could not be read"""

    def __init__(self) -> None:
        self.queues: dict[str, d.QueueDefinition] = {}
        self.channels: dict[str, d.ChannelDefinition] = {}
        self.ids_of: dict[str, dict[str, None]] = {}
        self.bad = 0

    def __eq__(self, other: object) -> bool:
        """Whether it tells the same queues and channels."""
        if not isinstance(other, QueueRegistry):
            return NotImplemented
        return (self.queues, self.channels) == (other.queues, other.channels)

    __hash__ = None  # type: ignore[assignment]

    def apply(self, topic: str, payload: bytes) -> bool:
        """A definition changes; empty: it is deleted. returns: whether it is one"""
        label, _, channel_id = topic.removeprefix(CONFIG).partition("/")
        if not topic.startswith(CONFIG) or not label or label.startswith("$"):
            return False
        try:
            if channel_id:
                self._apply_channel(label, channel_id, payload)
            else:
                self._apply_queue(label, payload)
        except ValueError:
            self.bad += 1
            return False
        return True

    def channels_of(self, label: str) -> list[d.ChannelDefinition]:
        """Those of a queue that is there, or is not any more."""
        return [self.channels[each] for each in self.ids_of.get(label, ()) if each in self.channels]

    def clear(self) -> None:
        self.queues.clear()
        self.channels.clear()
        self.ids_of.clear()

    def _apply_queue(self, label: str, payload: bytes) -> None:
        if not payload:
            self.queues.pop(label, None)
            return
        self.queues[label] = d.parse_queue(payload)

    def _apply_channel(self, label: str, channel_id: str, payload: bytes) -> None:
        if not payload:
            known = self.channels.get(channel_id)
            if known is not None and known.label == label:
                del self.channels[channel_id]
            ids = self.ids_of.get(label, {})
            ids.pop(channel_id, None)
            if not ids:
                self.ids_of.pop(label, None)
            return
        self.channels[channel_id] = d.parse_channel(payload)
        self.ids_of.setdefault(label, {})[channel_id] = None


def queue_topic(label: str) -> str:
    return f"{CONFIG}{label}"


def channel_topic(label: str, channel_id: str) -> str:
    return f"{CONFIG}{label}/{channel_id}"
