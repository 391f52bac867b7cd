"""What three clients do, from a seed: plain values, so that a session can be printed. Knows no socket and no broker.

Left out is what mosquitto 2.0 does otherwise than the standard says: subscriptions of one client that overlap (it may
take the lower QoS), options that another SUBSCRIBE changes (it keeps the first ones), Receive Maximum, the will of a
client whose session is taken over (it sends none), and what is retained for a shared subscription (it sends that)."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.conformance.wire import Prop, Properties, Value, Will

CLIENTS = 3
TOPICS = ("a", "a/b", "a/b/c", "b", "b/x", "a//c", "/a", "a/")
FILTERS = ("a", "a/b", "a/+", "a/#", "+", "+/+", "#", "b/#", "a/+/c", "/+", "+/", "a//c", "a/b/#")
VERSIONS = (3, 4, 5, 5, 5)
NO_LOCAL, RETAIN_HANDLING, NOTHING_RETAINED = 0x04, 0x30, 0x20  # of the options of a subscription; MQTT 5.0, 3.8.3.1
OFTEN: tuple[tuple[float, tuple[int, Value]], ...] = (  # of PUBLISH: how likely
    (0.2, (Prop.CONTENT_TYPE, "text")),
    (0.2, (Prop.USER_PROPERTY, ("a", "1"))),
    (0.15, (Prop.MESSAGE_EXPIRY, 100_000)),
    (0.1, (Prop.RESPONSE_TOPIC, "r/t")),
    (0.1, (Prop.CORRELATION_DATA, b"\x00\x01")),
    (0.1, (Prop.PAYLOAD_FORMAT, 1)),
)


@dataclass(frozen=True)
class Come:
    """clean: Clean Start; as of a client that is connected already: the session is taken over"""

    client: int
    version: int
    clean: bool
    properties: Properties
    will: Will | None


@dataclass(frozen=True)
class Subscribe:
    """filters: with their options"""

    client: int
    filters: tuple[tuple[str, int], ...]
    properties: Properties


@dataclass(frozen=True)
class Unsubscribe:
    client: int
    filters: tuple[str, ...]


@dataclass(frozen=True)
class Publish:
    client: int
    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: Properties


@dataclass(frozen=True)
class Withhold:
    """It acknowledges nothing more until it comes again."""

    client: int


@dataclass(frozen=True)
class Leave:
    """reason: of DISCONNECT; None: without one"""

    client: int
    reason: int | None
    properties: Properties = ()


Action = Come | Subscribe | Unsubscribe | Publish | Withhold | Leave


class Script:
    """The next action, whatever has come of those before. published: how many messages, wills too, are out by then"""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._versions = [self._random.choice(VERSIONS) for _ in range(CLIENTS)]
        self._numbers = [self._random.choice((0, 1, 200)) * (version == 5) for version in self._versions]
        self._connected = [False] * CLIENTS
        self._subscribed: list[set[str]] = [set() for _ in range(CLIENTS)]
        self._has_will = [False] * CLIENTS
        self.prefix, self.published = f"s{seed}", 0

    def next(self) -> Action:
        client = self._random.randrange(CLIENTS)
        if not self._connected[client] or (self._chance(0.04) and not self._has_will[client]):
            self._connected[client] = True
            return self._come(client)
        chosen = self._random.random()
        if chosen < 0.25:
            filters = self._filters(client)
            if filters:
                number = self._numbers[client]
                return Subscribe(client, filters, [(Prop.SUBSCRIPTION_ID, number)] if number else [])
        if chosen < 0.32:
            left = [self._random.choice(FILTERS) for _ in range(self._random.choice((1, 2)))]
            self._subscribed[client].difference_update(left)
            return Unsubscribe(client, tuple(self._asked(client, each) for each in left))
        if chosen < 0.77:
            return self._publish(client)
        if chosen < 0.81:
            return Withhold(client)
        self._connected[client] = False
        return self._leave(client)

    def _come(self, client: int) -> Come:
        properties: list[tuple[int, Value]] = []
        if self._is_5(client) and self._chance(0.7):
            properties.append((Prop.SESSION_EXPIRY, self._random.choice((0, 1000, 0xFFFFFFFF))))
        will = None
        if self._chance(0.4):
            more = [(Prop.CONTENT_TYPE, "w"), (Prop.USER_PROPERTY, ("k", "v"))]
            payload = self._random.choice((b"", b"will %d" % self.published))
            topic = self._named(self._random.choice(TOPICS))
            will = Will(
                topic, payload, self._random.randrange(3), self._chance(0.4),
                more if self._is_5(client) and self._chance(0.5) else (),
            )  # fmt: skip
        self._has_will[client] = will is not None
        return Come(client, self._versions[client], self._chance(0.4), properties, will)

    def _filters(self, client: int) -> tuple[tuple[str, int], ...]:
        found: dict[str, int] = {}
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            pattern = self._random.choice(FILTERS)
            if any(overlap(pattern, other) for other in self._subscribed[client] - {pattern}):
                continue
            self._subscribed[client].add(pattern)
            options = self._random.randrange(3)
            if self._is_5(client):  # No Local and Retain As Published are those of the client and the filter
                options |= (FILTERS.index(pattern) % 5 == client) << 2 | (FILTERS.index(pattern) % 3 == client) << 3
                options |= self._random.choice((0, 0, 1, 2)) << 4
            if self._shares(client, pattern):
                options = options & ~(NO_LOCAL | RETAIN_HANDLING) | NOTHING_RETAINED
            found[self._asked(client, pattern)] = options
        return tuple(found.items())

    def _publish(self, client: int) -> Publish:
        self.published += 1
        payload = b"" if self._chance(0.15) else b"m%d" % self.published
        properties: list[tuple[int, Value]] = []
        if self._is_5(client):
            properties += [each for likely, each in OFTEN if self._chance(likely)]
        topic = self._named(self._random.choice(TOPICS))
        return Publish(client, topic, payload, self._random.randrange(3), self._chance(0.35), properties)

    def _leave(self, client: int) -> Leave:
        ways = [Leave(client, None), Leave(client, 0), Leave(client, 0)]
        if self._is_5(client):
            ways += [Leave(client, 4), Leave(client, 0, ((Prop.SESSION_EXPIRY, 0),))]
        chosen = self._random.choice(ways)
        self.published += self._has_will[client] and chosen.reason != 0
        return chosen

    def _asked(self, client: int, pattern: str) -> str:
        """A filter as the client writes it: each client is alone in its group."""
        return f"$share/g{client}/{self._named(pattern)}" if self._shares(client, pattern) else self._named(pattern)

    def _shares(self, client: int, pattern: str) -> bool:
        return self._is_5(client) and FILTERS.index(pattern) % 4 == client

    def _is_5(self, client: int) -> bool:
        return self._versions[client] == 5

    def _chance(self, likely: float) -> bool:
        return self._random.random() < likely

    def _named(self, topic: str) -> str:
        return f"{self.prefix}/{topic}"


def overlap(pattern: str, other: str) -> bool:
    """Of the topics that there are."""
    return any(matches(pattern, topic) and matches(other, topic) for topic in TOPICS)


def matches(pattern: str, topic: str) -> bool:
    """MQTT 5.0, 4.7.1"""
    levels = topic.split("/")
    for at, level in enumerate(pattern.split("/")):
        if level == "#":
            return True
        if at == len(levels) or level not in ("+", levels[at]):
            return False
    return at + 1 == len(levels)
