"""The operator asks one whole shard, as over its socket."""

from typing import Any

import msgspec

from rumq.admin.merging import merged
from rumq.admin.operations import OPERATIONS, request_of
from rumq.shards.admin.actions import BrokerActions
from rumq.shards.stats.counters import CountedShard
from tests.conformance import wire
from tests.conformance.wire import Prop
from tests.faults.shard import Client, Shard

LASTING = [(Prop.SESSION_EXPIRY, 1_000_000)]


def counted_of(shard: Shard) -> CountedShard:
    """What the answers of this shard count."""
    actions: BrokerActions = shard.parts.operation.admin.handlers["shutdown"].__self__  # type: ignore[attr-defined]
    return actions._counted


def ask(shard: Shard, question: str, **more: Any) -> Any:
    """The answer as a program gets it: over the socket and merged, checked against its type."""
    said = {"ask": question, **more}
    answer = shard.parts.operation.admin.answer(said)
    if callable(answer):
        answers: list[Any] = []
        answer(answers.append)
        for _ in range(8):
            shard.settle()
        (answer,) = answers
    reply = msgspec.json.decode(msgspec.json.encode(answer))
    return merged(OPERATIONS[question], request_of(said)[1], [reply])


def ask_raw(shard: Shard, question: str, **more: Any) -> dict[str, Any]:
    """The answer of the shard itself, in the turn in which it comes."""
    answer = shard.parts.operation.admin.answer({"ask": question, **more})
    if not callable(answer):
        return answer
    answers: list[dict[str, Any]] = []
    answer(answers.append)
    for _ in range(8):
        shard.settle()
    (only,) = answers
    return only


def away(shard: Shard, *filters: str) -> None:
    client = Client(shard, "away", 5, properties=LASTING)
    client.say(wire.subscribe(1, [(each, 1) for each in filters]), wire.disconnect())


def publish(shard: Shard, client: Client, *topics: str, retain: bool = False) -> None:
    for number, topic in enumerate(topics):
        client.say(wire.publish(topic, b"21.5", 1, 1 + number, retain=retain))


def login(shard: Shard, client_id: str, **more: object) -> int:
    """The reason code of CONNACK."""
    client = Client.__new__(Client)
    client.shard, client.version = shard, 5
    client.room, client.refused, client.peer, client.closed = 1 << 20, False, "test", False
    client.bytes_in = client.bytes_out = 0
    client.tap = client.unparsed = None
    client._bytes, client._early = bytearray(), []
    client.link = shard.parts.clients.broker.welcome(client)
    client.say(wire.connect(client_id, 5, **more))
    return client.take()[0].code
