"""Topic names with named levels: `plant/{pump}/temperature` is a filter, makes topic names, and reads them.

A name stands for one whole level. Knows no payload."""

from __future__ import annotations

from collections.abc import Mapping

from rumq.mqtt.errors import TopicNameInvalid
from rumq.mqtt.topics import check_topic_name

RESERVED = frozenset({"client", "topic", "value", "qos", "retain"})  # arguments of `publish` beside the names


class TopicPattern:
    """filter: what to subscribe to; names: those of its levels, in order"""

    def __init__(self, pattern: str) -> None:
        """raises: ValueError"""
        self._pattern = pattern
        self._levels = [level_of(pattern, text) for text in pattern.split("/")]
        self.names = tuple(name for name, _ in self._levels if name)
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"the pattern {pattern!r} has a name twice")
        if taken := RESERVED.intersection(self.names):
            raise ValueError(
                f"the pattern {pattern!r} has the name {min(taken)!r}, an argument of publish: another one"
            )
        self.filter = "/".join("+" if name else text for name, text in self._levels)
        check_name(self.filter.replace("+", "x"), pattern)

    def topic(self, names: Mapping[str, object]) -> str:
        """The topic name. names: one for each of `self.names`, as text or what `str` makes of it. raises: ValueError"""
        if names.keys() != set(self.names):
            wanted = ", ".join(self.names) or "no names"
            raise ValueError(f"the topic {self._pattern!r} takes {wanted}; given: {', '.join(names) or 'none'}")
        topic = "/".join(fill(name, names[name]) if name else text for name, text in self._levels)
        check_name(topic, self._pattern)
        return topic

    def maybe_names(self, topic: str) -> dict[str, str] | None:
        """Name -> level of a topic name; None if it is not of this pattern."""
        levels = topic.split("/")
        if len(levels) != len(self._levels) or (topic.startswith("$") and self.filter.startswith("+")):
            return None
        found = {}
        for (name, text), level in zip(self._levels, levels, strict=True):
            if name:
                found[name] = level
            elif text != level:
                return None
        return found

    def __repr__(self) -> str:
        return repr(self._pattern)


def level_of(pattern: str, text: str) -> tuple[str, str]:
    """(name, "") of `{name}`, ("", text) of any other level. raises: ValueError"""
    name = text[1:-1]
    if text.startswith("{") and text.endswith("}") and name.isidentifier():
        return name, ""
    if set(text) & set("{}+#"):
        raise ValueError(f"the pattern {pattern!r} has the level {text!r}: expected text, or a name as {{pump}}")
    return "", text


def fill(name: str, value: object) -> str:
    """raises: ValueError for what would be more than one level, or none"""
    text = str(value)
    if not text or set(text) & set("/+#\0"):
        raise ValueError(f"{name} = {text!r}: expected one level of a topic, without / + #")
    return text


def check_name(topic: str, pattern: str) -> None:
    try:
        check_topic_name(topic)
    except TopicNameInvalid as fault:
        raise ValueError(f"the pattern {pattern!r}: {fault}") from None
