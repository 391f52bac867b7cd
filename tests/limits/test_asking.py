"""What an operator asks a broker that runs: who is there, who is behind, which topics; and to end one of them."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.cli.conftest import rumqd
from tests.conformance import wire
from tests.conformance.wire import Prop
from tests.faults.shard import Client, Shard
from tests.limits.conftest import Dial, Run, data, join, run
from tests.limits.test_ledger import ask

__all__ = ["data", "join", "run"]
LASTING = [(Prop.SESSION_EXPIRY, 100_000)]


@pytest.fixture
def shard() -> Iterator[Shard]:
    started = Shard(SimulatedFiles())
    yield started
    started.end()


def test_clients_and_topics_are_sorted_filtered_and_bounded(run: Run, join: Dial) -> None:
    broker = run("--set", "shards.count=2")
    away = join(broker, "away", properties=LASTING)
    away.subscribe("t/#", qos=1)
    away.leave()
    publisher = join(broker, "pump-1")
    for topic, count in (("t/a", 5), ("t/b", 3), ("u/c", 1)):
        for number in range(count):
            publisher.publish(topic, b"%d" % number, qos=1)
    others = [join(broker, f"pump-{number}") for number in (2, 3)]
    said = ask(broker, "clients", "--sort", "lag", "--limit", "1")
    (row,) = said["clients"]
    assert (row["client_id"], row["behind_records"], row["connected"]) == ("away", 9, False) and said["left_out"] == 3
    assert [row["client_id"] for row in ask(broker, "clients", "--client", "pump-*")["clients"]] == [
        "pump-1", "pump-2", "pump-3",
    ]  # fmt: skip
    (row,) = ask(broker, "clients", "--client", "pump-1")["clients"]
    assert row["address"].startswith("127.0.0.1:") and row["protocol"] == "5" and row["since_seconds"] >= 0
    assert row["published"] == 9 and row["keep_alive_seconds"] is not None
    assert ask(broker, "clients", "--user", "nobody")["clients"] == []
    topics = ask(broker, "topics", "--topic", "t/#")["topics"]
    assert [(row["topic"], row["records"]) for row in topics] == [("t/a", 5), ("t/b", 3)]
    status = ask(broker, "status")
    assert status["version"] and status["uptime_seconds"] > 0 and status["memory_bytes"] > 0
    assert status["disk"]["total_bytes"] > status["disk"]["free_bytes"] > 0
    assert status["listeners"] == [f"127.0.0.1:{broker.address.port}"]
    assert len(others) == 2


def test_a_client_is_disconnected_and_a_session_dropped(run: Run, join: Dial) -> None:
    broker = run()
    lasting = join(broker, "lasting", properties=LASTING)
    lasting.subscribe("t", qos=1)
    assert ask(broker, "disconnect", "--client", "lasting") == {
        "missing": [],
        "disconnected": 1,
        "dropped": 0,
    }
    assert lasting.receive().code == 0x98
    broker.event("client.dismissed")
    assert join(broker, "lasting", clean=False, properties=LASTING).subscribe("u") is not None
    assert ask(broker, "drop", "--client", "lasting")["dropped"] == 1
    broker.event("session.dropped")
    assert ask(broker, "clients", "--client", "lasting")["clients"] == []
    gone = rumqd("ask", "drop", "--client", "lasting", "--data", str(broker.data))
    assert gone.status == 1 and "there is no client 'lasting'" in gone.err


def test_an_order_that_there_is_not_is_refused(shard: Shard) -> None:
    with pytest.raises(ValueError, match="cannot take sort 'size'; one of client, lag"):
        shard.parts.operation.admin.answer({"ask": "clients", "sort": "size"})(lambda _: None)  # type: ignore[operator]


def test_a_consumer_that_falls_behind_is_told_of_once_and_when_it_is_back(shard: Shard) -> None:
    shard.parts.operation.consumers.alarm.records_max = 10
    shard.parts.operation.consumers.begin()
    away = Client(shard, "away", 5, properties=LASTING)
    away.say(wire.subscribe(1, [("t", 0)]))
    away.take()
    away.say(wire.disconnect())
    publisher = Client(shard, "p", 5)
    for number in range(20):
        publisher.say(wire.publish("t", b"x", 1, 1 + number))
        shard.after(1.0)
    for _ in range(3):
        shard.after(10.0)
    (said,) = shard.told("consumer.lagging")
    assert said["client_id"] == "away" and 10 < said["records"] <= 20 and said["seconds"] > 0
    assert not said["connected"] and not shard.told("consumer.caught_up")
    back = Client(shard, "away", 5, clean=False, properties=LASTING)
    back.take()
    shard.after(10.0)
    (said,) = shard.told("consumer.caught_up")
    assert (said["client_id"], said["records"], said["connected"]) == ("away", 0, True)


def test_rates_are_those_between_two_looks(shard: Shard) -> None:
    shard.parts.operation.consumers.begin()
    publisher = Client(shard, "p", 5)
    for number in range(30):
        publisher.say(wire.publish("t", b"x", 1, 1 + number))
        shard.after(1.0)
    (session,) = shard.parts.clients.broker.registry.sessions.values()
    rates = shard.parts.operation.consumers.rates(session)
    assert rates is not None and rates.published_rate == pytest.approx(1.0, abs=0.11)
