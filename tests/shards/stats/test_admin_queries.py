"""Questions of the operator to a running shard: status, what was not delivered, and the end of a client."""

from collections.abc import Iterator
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.admin.operations import UNKNOWN
from rumq.mqtt.reasons import Reason
from rumq.shards.stats.admin_queries import QUESTIONS, Unknown, memory_bytes
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard

NEEDS: dict[str, dict[str, Any]] = {
    "client": {"client": "c"}, "disconnect": {"client": "c"}, "drop": {"client": "c"}, "subscribers": {"topic": "t"},
    "waiting": {"client": "c"},
    "ban": {"kind": "client", "name": "c"}, "unban": {"kind": "client", "name": "c"},
    "reset": {"client": "c", "start": "earliest"}, "seal": {"stream": "main"},
    "trim": {"stream": "main", "below_lsn": 1},
    "trace": {"kind": "client", "name": "c"}, "untrace": {"kind": "client", "name": "c"},
}  # fmt: skip
LASTING = [(Prop.SESSION_EXPIRY, 1_000_000)]


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


def ask(shard: Shard, question: str, **more: Any) -> dict[str, Any]:
    """The answer, in the turn in which it comes."""
    answer = shard.parts.admin.answer({"ask": question, **more})
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


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_has_an_answer(shard: Shard, question: str) -> None:
    assert ask(shard, question, **NEEDS.get(question, {}))


@pytest.mark.parametrize("question", ["", "Status", None, 7])
def test_another_question_is_refused_with_those_that_there_are(shard: Shard, question: Any) -> None:
    with pytest.raises(Unknown, match=f"cannot answer {question!r}; ask one of status, clients, topics"):
        ask(shard, question)


def test_the_status_has_clients_sessions_and_where_each_partition_stands(shard: Shard) -> None:
    away(shard, "t")
    Client(shard, "p", 5).say(wire.publish("t", b"x", 1, 1), wire.publish("u", b"x", 1, 2, retain=True))
    shard.parts.broker.drop_counters.count("expired", "c", "t", 5)
    status = ask(shard, "status")
    assert (status["connected"], status["sessions"], status["retained"], status["undelivered"]) == (
        1,
        2,
        1,
        5,
    )
    assert status["log_bytes"] == sum(p.segments.bytes for p in shard.store.own)
    _, main = status["partitions"]
    assert (main.stream, main.partition, main.durability, main.topics) == ("main", 0, "disk", 2)
    assert (main.first_lsn, main.next_lsn, main.committed_lsn, main.offline) == (0, 2, 2, None)


def test_shard_0_tells_of_the_broker_and_when_its_disk_will_be_full(shard: Shard) -> None:
    shard.parts.admin.status.about = {"version": "1", "shards": 1}
    before = ask(shard, "status")
    assert (before["version"], before["uptime_seconds"]) == ("1", 0.0)
    shard.after(61.25)
    status = ask(shard, "status")
    assert status["uptime_seconds"] == 61.2 and status["disk_is_full"] == 0
    assert status["disk"]["total_bytes"] == 1 << 50 and status["disk"]["full_in_seconds"] is None
    assert status["disk"]["then"] == "publishers are refused", "no stream yields"


def test_a_full_disk_and_a_partition_that_is_offline_are_in_the_status(shard: Shard) -> None:
    shard.parts.admission.free_bytes_min = 1
    shard.parts.admission.free(0)
    partition = shard.store.own[0]
    partition.offline = OSError(5, "why")  # type: ignore[assignment]
    status = ask(shard, "status")
    assert status["disk_is_full"] == 1
    assert [each.offline for each in status["partitions"]] == ["[Errno 5] why", None]
    partition.offline = None


def test_what_was_not_delivered_is_asked_for_by_client_and_topic(shard: Shard) -> None:
    counters = shard.parts.broker.drop_counters
    keys = {}
    for name in ("a", "b"):
        Client(shard, name, 5)
        keys[name] = next(s.key for s in shard.parts.broker.registry.sessions.values() if s.client_id == name)
    counters.count("expired", keys["a"], "t", 2)
    counters.count("over_limit", keys["a"], "u", 3)
    counters.count("expired", keys["b"], "t", 4)

    def rows(**question: str) -> list[tuple[str, str, str, int]]:
        found = ask(shard, "ledger", **question)["undelivered"]
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
    assert ask(shard, "ledger")["pending"] == [], "for all of them that would be a search of the log for each"
    pending = ask(shard, "ledger", client="away")["pending"]
    assert [(row["topic"], row["records"]) for row in pending] == [("t/0", 3), ("t/1", 2)]
    assert ask(shard, "ledger", client="away", topic="t/1")["pending"] == [
        {"client_id": "away", "topic": "t/1", "records": 2}
    ]


def test_a_client_is_disconnected_and_its_session_stays(shard: Shard) -> None:
    client = Client(shard, "c", 5, properties=LASTING)
    assert ask(shard, "disconnect", client="c") == {"disconnected": 1, "dropped": 0}
    (packet,) = client.take()
    assert (packet.kind, packet.code) == (Kind.DISCONNECT, Reason.ADMINISTRATIVE_ACTION) and client.closed
    assert shard.told("client.dismissed") == [{"client_id": "c", "sessions": 1}]
    assert ask(shard, "disconnect", client="c") == {"disconnected": 0, "dropped": 0}
    assert ask(shard, "status")["sessions"] == 1


def test_a_session_is_dropped_with_or_without_its_client(shard: Shard) -> None:
    client = Client(shard, "c", 5, properties=LASTING)
    assert ask(shard, "drop", client="c") == {"disconnected": 1, "dropped": 1}
    assert client.closed and ask(shard, "status")["sessions"] == 0
    away(shard, "t")
    assert ask(shard, "drop", client="away") == {"disconnected": 0, "dropped": 1}
    assert shard.told("session.dropped") == [
        {"client_id": name, "sessions": 1} for name in ("c", "away")
    ]  # fmt: skip


def test_a_client_that_there_is_not_is_no_event(shard: Shard) -> None:
    nothing = {"disconnected": 0, "dropped": 0, UNKNOWN: True}
    assert ask(shard, "drop", client="nobody") == ask(shard, "disconnect", client="nobody") == nothing
    assert not shard.told("session.dropped", "client.dismissed")


def test_the_memory_of_this_process_is_more_than_nothing() -> None:
    assert 1 << 20 < memory_bytes() < 1 << 40 and memory_bytes() % 1024 == 0
