"""What was not delivered, by client and topic, and what is still to come for one client."""

from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import ask_raw, away


def test_what_was_not_delivered_is_asked_for_by_client_and_topic(shard: Shard) -> None:
    counters = shard.parts.delivery.drop_counters
    keys = {}
    for name in ("a", "b"):
        Client(shard, name, 5)
        keys[name] = next(s.key for s in shard.parts.clients.broker.registry.sessions.values() if s.client_id == name)
    counters.count("expired", keys["a"], "t", 2)
    counters.count("over_limit", keys["a"], "u", 3)
    counters.count("expired", keys["b"], "t", 4)

    def rows(**question: str) -> list[tuple[str, str, str, int]]:
        found = ask_raw(shard, "ledger", **question)["undelivered"]
        return sorted((row["client_id"], row["topic"], row["reason"], row["records"]) for row in found)

    everything = [("a", "t", "expired", 2), ("a", "u", "over_limit", 3), ("b", "t", "expired", 4)]
    assert rows() == everything
    assert rows(client="a") == everything[:2]
    assert rows(topic="t") == [everything[0], everything[2]]
    assert rows(client="a", topic="u") == [everything[1]]
    assert rows(client="nobody") == []


def test_what_is_still_to_come_is_told_of_one_client(shard: Shard) -> None:
    away(shard, "t/#")
    Client(shard, "p", 5).say(*[wire.publish(f"t/{n % 2}", b"x", 1, 1 + n) for n in range(5)])
    assert ask_raw(shard, "ledger")["pending"] == [], "for all of them that would be a search of the log for each"
    pending = ask_raw(shard, "ledger", client="away")["pending"]
    assert [(row["topic"], row["records"]) for row in pending] == [("t/0", 3), ("t/1", 2)]
    assert ask_raw(shard, "ledger", client="away", topic="t/1")["pending"] == [
        {"client_id": "away", "topic": "t/1", "records": 2}
    ]
