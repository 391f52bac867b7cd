"""Topic names and topic filters: what is valid, and what matches. MQTT 5.0, 4.7 and 4.8.2."""
# compiled: warm

from typing import Final

from rumq.mqtt.errors import TopicFilterInvalid, TopicNameInvalid

TOPIC_BYTES_MAX: Final = 65_535
TOPIC_LEVELS_MAX: Final = 65_536  # as many as the longest topic can have
SHARE_PREFIX: Final = "$share/"


def has_wildcard(topic: str) -> bool:
    return "#" in topic or "+" in topic


def is_reserved(topic: str) -> bool:
    """Whether a topic name is the broker's own: clients may read it, not publish to it. 4.7.2"""
    return topic.startswith("$SYS/") or topic == "$SYS"


def check_topic_name(topic: str, *, bytes_max: int = TOPIC_BYTES_MAX, levels_max: int = TOPIC_LEVELS_MAX) -> None:
    """Refuse what no message may be published to.

    bytes_max, levels_max: of its UTF-8 form; of the parts between slashes, empty ones counted
    raises: TopicNameInvalid, 0x90
    """
    if has_wildcard(topic):
        raise TopicNameInvalid(f"the topic {_shown(topic)} has a wildcard")
    if (problem := _maybe_problem(topic, bytes_max, levels_max)) is not None:
        raise TopicNameInvalid(f"the topic {_shown(topic)} {problem}")


def check_topic_filter(
    topic_filter: str, *, bytes_max: int = TOPIC_BYTES_MAX, levels_max: int = TOPIC_LEVELS_MAX
) -> None:
    """Refuse what nobody may subscribe to. Of a shared subscription the share name is checked too.

    bytes_max, levels_max: as in `check_topic_name`, of the part after the share name
    raises: TopicFilterInvalid, 0x8F
    """
    if (shared := parse_share(topic_filter)) is not None:
        topic_filter = shared[1]
    if (problem := _maybe_problem(topic_filter, bytes_max, levels_max)) is not None:
        raise TopicFilterInvalid(f"the topic filter {_shown(topic_filter)} {problem}")
    if not has_wildcard(topic_filter):
        return
    levels = topic_filter.split("/")
    if any("#" in level for level in levels[:-1]):
        raise TopicFilterInvalid(f"the topic filter {_shown(topic_filter)} goes on after #")
    if any(len(level) > 1 and has_wildcard(level) for level in levels):
        raise TopicFilterInvalid(f"the topic filter {_shown(topic_filter)} has a wildcard that is not a whole level")


def parse_share(topic_filter: str) -> tuple[str, str] | None:
    """(share name, filter) of a shared subscription `$share/name/filter`; None for any other filter.

    raises: TopicFilterInvalid where the name or the filter is missing, or the name has a wildcard
    """
    if not topic_filter.startswith(SHARE_PREFIX):
        return None
    share_name, slash, shared_filter = topic_filter[len(SHARE_PREFIX) :].partition("/")
    if not share_name:
        raise TopicFilterInvalid(f"the shared subscription {_shown(topic_filter)} has no share name")
    if has_wildcard(share_name):
        raise TopicFilterInvalid(f"the share name of {_shown(topic_filter)} has a wildcard")
    if not slash or not shared_filter:
        raise TopicFilterInvalid(f"the shared subscription {_shown(topic_filter)} has no topic filter")
    return share_name, shared_filter


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a valid filter, without a share name, covers a valid topic name.

    A filter that begins with a wildcard covers no topic that begins with `$`. [MQTT-4.7.2-1]
    """
    if topic.startswith("$") and topic_filter.startswith(("#", "+")):
        return False
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if wanted[-1] == "#":
        # `a/#` covers `a` too, so the level before # is the last one that must be there.
        del wanted[-1]
        if len(levels) < len(wanted):
            return False
    elif len(levels) != len(wanted):
        return False
    return all(want in ("+", level) for want, level in zip(wanted, levels, strict=False))


def filters_overlap(one: str, other: str) -> bool:
    """Whether two valid filters have a topic in common, the rule for `$` aside."""
    a, b = one.split("/"), other.split("/")
    for first, second in zip(a, b, strict=False):
        if "#" in (first, second):
            return True
        if first != second and "+" not in (first, second):
            return False
    return len(a) == len(b) or [*a[len(b) :], *b[len(a) :]] == ["#"]  # `a/#` covers `a` too


def _maybe_problem(topic: str, bytes_max: int, levels_max: int) -> str | None:
    """What is wrong with a name or a filter alike. 4.7.3"""
    if not topic:
        return "is empty"
    if "\0" in topic:
        return "has the forbidden character U+0000"
    try:
        size = len(topic.encode())
    except UnicodeEncodeError:
        return "has half of a surrogate pair"
    if size > bytes_max:
        return f"has {size} bytes, the limit is {bytes_max}"
    if (levels := topic.count("/") + 1) > levels_max:
        return f"has {levels} levels, the limit is {levels_max}"
    return None


def _shown(topic: str) -> str:
    """A topic for a sentence: quoted, what cannot be printed escaped, and not longer than one line."""
    return repr(topic) if len(topic) <= 80 else f"{topic[:80]!r}..."
