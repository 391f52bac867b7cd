"""published = delivered + pending + counted, for each client and topic: many topics, all reasons, several shards."""

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests import admin_questions
from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Peer
from tests.conformance.wire import Kind, Prop
from tests.limits.conftest import Dial, Run
from tests.limits.test_ledger import LASTING

RULES = """
[[rule]]
allow = ["publish", "subscribe"]
topics = ["#"]

[[rule]]
deny = ["subscribe"]
topics = ["s/+/secret"]
"""
TOPICS = [f"s/{number}" for number in range(30)] + [f"s/{number}/secret" for number in range(10)]
SMALL, LARGE = 300, 3000
ROUNDS, MESSAGES = 3, 300
FILTERS = {
    "all": ["s/#"],
    "one": ["s/3"],
    "few": ["s/1", "s/2", "s/5/#"],
    "small": ["s/#"],
    "gone": ["s/+"],
    "here": ["s/+"],
}


def flags(shards: int, folder: Path) -> list[str]:
    (folder / "rules.toml").write_text(RULES)
    settings = [
        f"shards.count={shards}", f"auth.rules_file={folder}/rules.toml", "mqtt.backlog_records_max=10",
        "log.segment_bytes_max=65536", "log.retention_bytes_max=131072",
    ]  # fmt: skip
    return [part for setting in settings for part in ("--set", setting)]


def ledger(broker: Rumqd, client: str) -> dict[str, Any]:
    return admin_questions.ask(str(broker.data), {"ask": "ledger", "client": client})


def matches(client: str, topic: str) -> bool:
    levels = topic.split("/")
    for topic_filter in FILTERS[client]:
        wanted = topic_filter.split("/")
        if wanted[-1] == "#" and levels[: len(wanted) - 1] == wanted[:-1]:
            return True
        if len(wanted) == len(levels) and all(w in ("+", level) for w, level in zip(wanted, levels, strict=True)):
            return True
    return False


class Subscribers:
    def __init__(self, broker: Rumqd, join: Dial) -> None:
        self.broker, self._join = broker, join
        self.here: dict[str, Peer] = {}
        self.delivered: dict[str, Counter[str]] = defaultdict(Counter)

    def come(self, client: str) -> None:
        properties = [*LASTING, *([(Prop.MAXIMUM_PACKET_SIZE, SMALL + 100)] if client == "small" else [])]
        self.here[client] = self._join(self.broker, client, clean=False, properties=properties)
        if not self.here[client].connack.session_present:
            for topic_filter in FILTERS[client]:
                self.here[client].subscribe(topic_filter, qos=1)

    def leave(self, client: str) -> None:
        self.drain(client)
        self.here.pop(client).leave()

    def drain(self, client: str) -> None:
        """Take and acknowledge messages until the broker says that none is to come."""
        peer = self.here[client]
        while True:
            # Asked first: what was sent until then is among what is taken now.
            is_over = not ledger(self.broker, client)["pending"]
            found = [p for p in peer.pending() if p.kind == Kind.PUBLISH]
            self.delivered[client].update(p.topic for p in found)
            peer.send(*[wire.ack(Kind.PUBACK, p.packet_id) for p in found if p.qos])
            if not found and is_over:
                break


@pytest.mark.parametrize("shards", [1, 2])
def test_each_topic_of_each_client_adds_up(run: Run, join: Dial, tmp_path: Path, shards: int) -> None:
    broker = run(*flags(shards, tmp_path))
    subscribers = Subscribers(broker, join)
    for client in FILTERS:
        subscribers.come(client)
    chance = random.Random(20)
    publisher = join(broker, "p")
    published: Counter[str] = Counter()
    trimmed = 0
    for number in range(ROUNDS * MESSAGES):
        if number % MESSAGES == 100:
            trimmed = len(broker.named("log.trimmed"))
            for client in set(subscribers.here) - {"here"}:
                subscribers.leave(client)
        if number % MESSAGES == MESSAGES - 1:
            join(broker, "brief", properties=[(Prop.SESSION_EXPIRY, 1)]).leave()
            broker.event("session.expired", number=1 + number // MESSAGES)  # so that a second has passed
            broker.event("log.trimmed", number=trimmed + 1)
            for client in set(FILTERS) - {"here", "gone"}:
                subscribers.come(client)
                subscribers.drain(client)
        topic = chance.choice(TOPICS)
        expiry = [(Prop.MESSAGE_EXPIRY, 1)] if chance.random() < 0.2 else []
        publisher.publish(topic, bytes(chance.choice([SMALL, LARGE])), qos=chance.choice([0, 1]), properties=expiry)
        published[topic] += 1
        if number % 20 == 0:
            subscribers.drain("here")
    for client in subscribers.here:
        subscribers.drain(client)
    reasons: Counter[str] = Counter()
    pending_of: Counter[str] = Counter()
    for client in FILTERS:
        said = ledger(broker, client)
        counted: Counter[str] = Counter()
        for row in said["undelivered"]:
            counted[row["topic"]] += row["records"]
            reasons[row["reason"]] += row["records"]
        pending = Counter({row["topic"]: row["records"] for row in said["pending"]})
        pending_of[client] = pending.total()
        for topic in {*TOPICS, *counted, *pending}:
            wanted = published[topic] if matches(client, topic) else 0
            assert wanted == subscribers.delivered[client][topic] + pending[topic] + counted[topic], (
                client,
                topic,
            )
        (told,) = admin_questions.ask(str(broker.data), {"ask": "clients", "client": client})["clients"]
        assert told["delivered"] == subscribers.delivered[client].total()
        assert told["undelivered"] == counted.total()
    assert set(reasons) == {"expired", "over_limit", "retention", "backlog_records_max", "no_permission"}
    assert pending_of["gone"] and not pending_of["here"]
