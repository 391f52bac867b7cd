"""Which topics a bridge relays, and under which names: the `topic` lines of mosquitto.conf(5).

`PATTERN [out|in|both] [QOS] [LOCAL_PREFIX] [REMOTE_PREFIX]`; `""` is an empty pattern or prefix. No I/O."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rumq.bridge.counts import IN, OUT
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.topics import check_topic_filter, check_topic_name, filters_overlap, matches

BOTH = "both"
EXPECTED = 'expected "PATTERN [out|in|both] [0|1|2] [LOCAL_PREFIX] [REMOTE_PREFIX]", such as "plant/# both 2"'


class TopicRuleFault(ValueError):
    """What is wrong with a rule, for an operator."""


@dataclass(frozen=True, slots=True)
class TopicRule:
    """pattern: a topic filter behind the prefixes; empty: the topics that the prefixes are themselves"""

    pattern: str
    direction: str = OUT
    qos: int = 0
    local_prefix: str = ""
    remote_prefix: str = ""


def parse_rule(text: str) -> TopicRule:
    """raises: TopicRuleFault"""
    try:
        words = shlex.split(text)
    except ValueError as fault:
        raise TopicRuleFault(f"{fault}: {EXPECTED}") from None
    if not 1 <= len(words) <= 5:
        raise TopicRuleFault(EXPECTED)
    pattern, direction, qos, local, remote = [*words, *("", OUT, "0", "", "")[len(words) :]]
    if direction not in (OUT, IN, BOTH):
        raise TopicRuleFault(f"{direction!r} is no direction: {EXPECTED}")
    if qos not in ("0", "1", "2"):
        raise TopicRuleFault(f"{qos!r} is no QoS: {EXPECTED}")
    rule = TopicRule(pattern, direction, int(qos), local, remote)
    check_rule(rule)
    return rule


def check_rule(rule: TopicRule) -> None:
    """raises: TopicRuleFault"""
    for prefix in (rule.local_prefix, rule.remote_prefix):
        if not (rule.pattern or prefix):
            raise TopicRuleFault("an empty pattern needs both prefixes, which are the two topics")
        try:
            if prefix:
                check_topic_name(prefix)
            check_topic_filter(prefix + rule.pattern)
        except MqttFault as fault:
            raise TopicRuleFault(str(fault)) from None
        if (prefix + rule.pattern).startswith("$share/"):
            raise TopicRuleFault("a bridge has no shared subscriptions: name the filter itself")


@dataclass(frozen=True, slots=True)
class RelayedTopic:
    """A rule in one direction. topic_filter: at the source"""

    topic_filter: str
    qos: int
    source_prefix: str
    target_prefix: str

    @property
    def target_filter(self) -> str:
        return self.target_prefix + self.topic_filter[len(self.source_prefix) :]


class TopicMap:
    """The topics of one direction; where several rules match a topic, the first one names it."""

    def __init__(self, rules: Sequence[TopicRule], direction: str) -> None:
        self.relayed = tuple(relayed(rules, direction))

    def maybe_target_topic(self, topic: str) -> str | None:
        """The name at the target; None: no rule relays it."""
        for each in self.relayed:
            # "a/#" matches "a" too, which has no prefix "a/" to be replaced.
            if topic.startswith(each.source_prefix) and matches(each.topic_filter, topic):
                found = each.target_prefix + topic[len(each.source_prefix) :]
                # At the target, too, a wildcard stands for nothing that begins with "$": those are a broker's own
                # topics, and the bridge may have more rights there than whoever published. MQTT 5.0, 4.7.2
                if matches(each.target_filter, found):
                    return found
        return None

    def subscriptions(self) -> dict[str, int]:
        """Filter at the source -> QoS, the highest of rules with equal filters."""
        found: dict[str, int] = {}
        for each in self.relayed:
            found[each.topic_filter] = max(each.qos, found.get(each.topic_filter, 0))
        return found


def relayed(rules: Sequence[TopicRule], direction: str) -> Iterator[RelayedTopic]:
    for rule in rules:
        if rule.direction not in (direction, BOTH):
            continue
        here, there = rule.local_prefix, rule.remote_prefix
        if direction == IN:
            here, there = there, here
        yield RelayedTopic(here + rule.pattern, rule.qos, here, there)


def is_both_ways(rules: Sequence[TopicRule]) -> bool:
    """Whether what goes out may match, at the other broker, what is subscribed to there."""
    ins = [each.topic_filter for each in relayed(rules, IN)]
    outs = [each.target_filter for each in relayed(rules, OUT)]
    return any(filters_overlap(one, other) for one in ins for other in outs)
