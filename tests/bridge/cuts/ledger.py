"""What two logs say of the messages between them. The log of the source is the ledger, whatever its publishers saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Logged = Iterable[tuple[str, str]]  # topic, payload


@dataclass
class Found:
    """lost, doubled: messages, by QoS; disordered: topics; examples: a few words of the first faults"""

    messages: Counter[int] = field(default_factory=Counter)
    lost: Counter[int] = field(default_factory=Counter)
    doubled: Counter[int] = field(default_factory=Counter)
    disordered: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Between rumq brokers, of QoS 1 too: docs/guides/bridges.md"""
        return not (self.lost.total() or self.doubled.total() or self.disordered)

    @property
    def is_right_with_others(self) -> bool:
        """Where the other broker is no rumq, QoS 1 is at least once."""
        return not (self.lost.total() or self.doubled[2] or self.disordered)


def compare(found: Found, source: Logged, target: Logged, names: Mapping[str, tuple[str, int]]) -> None:
    """Add what is wrong. names: topic at the source -> topic at the target, and its QoS"""
    sent, got = by_topic(source), by_topic(target)
    for topic, (target_topic, qos) in names.items():
        here, there = sent.get(topic, []), got.get(target_topic, [])
        lost, doubled = Counter(here) - Counter(there), Counter(there) - Counter(here)
        found.messages[qos] += len(here)
        found.lost[qos] += lost.total()
        found.doubled[qos] += doubled.total()
        if not lost and not doubled and here != there:
            found.disordered += 1
            found.examples.append(f"{topic}: another order")
        for what, which in (("lost", lost), ("doubled", doubled)):
            if which:
                found.examples.append(f"{topic}: {what}: {', '.join(list(which)[:5])}")


def by_topic(messages: Logged) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for topic, payload in messages:
        found.setdefault(topic, []).append(payload)
    return found
