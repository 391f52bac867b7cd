"""Sessions that are behind, in one whole shard."""

from rumq.session.state.session import Session
from tests.conformance import wire
from tests.conformance.wire import Prop
from tests.faults.shard import Client, Shard

LASTING = [(Prop.SESSION_EXPIRY, 1_000_000)]


def away(shard: Shard, client_id: str = "away") -> Session:
    """A session that reads t, whose client has gone."""
    client = Client(shard, client_id, 5, properties=LASTING)
    client.say(wire.subscribe(1, [("t", 1)]), wire.disconnect())
    return session_of(shard, client_id)


def session_of(shard: Shard, client_id: str) -> Session:
    return next(s for s in shard.parts.clients.broker.registry.sessions.values() if s.client_id == client_id)


def publish(shard: Shard, client: Client, count: int, seconds: float = 0.0) -> None:
    for number in range(count):
        client.say(wire.publish("t", b"x", 1, 1 + number))
        shard.after(seconds)
