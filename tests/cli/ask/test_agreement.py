"""`rumqd ask` over the socket, `rumqd ask` over REST, and REST itself give one answer. A broker with two shards."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rumq.admin.kafka_groups import KAFKA_OPERATIONS
from rumq.cli.ask.questions import OF_THE_GATEWAY, lines, question_of
from tests.cli.conftest import Ended, rumqd
from tests.gateway.conftest import Gateway, started

TOPICS = ("plant/1/temp", "plant/2/temp", "plant/3/temp", "mill/1")
NEEDS = {
    "client": ("--client", "away"), "subscribers": ("--topic", "plant/1/temp"), "topics": ("--limit", "3"),
    "clients": ("--sort", "lag"), "waiting": ("--client", "away"),
}  # fmt: skip
ELSEWHERE = {*OF_THE_GATEWAY, *KAFKA_OPERATIONS}  # the latter in tests/kafka/test_group_lag.py
QUERIES = [name for name in lines() if name not in ELSEWHERE and not question_of(name).is_action]
# What moves between two questions. Anything else that differs is a fault.
MOVES = {
    "uptime_seconds", "memory_bytes", "turns", "free_bytes", "bytes_per_second", "full_in_seconds", "expires_seconds",
    "counters", "gauges", "histograms", "time_us", "cpu_seconds", "rate", "pending_bytes", "cursor", "events",
    "behind_seconds", "lost", "records_per_second", "free_wanted", "connected", "counted_seconds_ago",
}  # fmt: skip


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("agreement"), shards=2)
    (made.broker.data.parent / "token").write_text(made.secrets["ops"])
    (made.broker.data.parent / "token").chmod(0o600)
    port = str(made.broker.address.port)
    words = ("sub", "-p", port, "plant/#", "-q", "1", "-i", "away", "--session-expiry", "3600", "-W", "1")
    assert rumqd(*words).status == 0
    for topic in TOPICS:
        assert rumqd("pub", "-p", port, topic, "-m", "21.5", "-q", "1", "-r").status == 0
    yield made
    made.broker.end()


def ask(gateway: Gateway, *words: str, over: str) -> Ended:
    data = gateway.broker.data
    where = ("--data", str(data)) if over == "socket" else (
        "--url", f"http://127.0.0.1:{gateway.port}", "--token-file", str(data.parent / "token")
    )  # fmt: skip
    return rumqd("ask", *words, *where)


def still(answer: Any) -> Any:
    """Without what moves, rows in one order."""
    if isinstance(answer, dict):
        return {name: still(value) for name, value in answer.items() if name not in MOVES}
    if isinstance(answer, list):
        return sorted((still(each) for each in answer), key=str)
    return answer


@pytest.mark.parametrize("name", QUERIES)
def test_socket_and_rest_agree(gateway: Gateway, name: str) -> None:
    words = (name, *NEEDS.get(name, ()), "--json")
    local, remote = (ask(gateway, *words, over=over) for over in ("socket", "rest"))
    assert (local.status, local.err, remote.status, remote.err) == (0, "", 0, "")
    given = "&".join(f"{flag[2:]}={value}" for flag, value in zip(words[1:-1:2], words[2:-1:2], strict=True))
    path = f"{name}?{given}" if given else name
    answers = [json.loads(local.out), json.loads(remote.out), gateway.get(path)]
    assert still(answers[0]) == still(answers[1]) == still(answers[2])
    assert answers[0].keys() == answers[1].keys() == answers[2].keys()


def test_what_is_asked_is_really_there(gateway: Gateway) -> None:
    """The test above would also agree on empty answers."""
    clients = json.loads(ask(gateway, "clients", "--json", over="socket").out)["clients"]
    assert [(row["client_id"], row["behind_records"]) for row in clients] == [("away", 4)]
    topics = json.loads(ask(gateway, "topics", "--json", over="rest").out)["topics"]
    assert sorted(row["topic"] for row in topics) == sorted(TOPICS)
    assert {
        row["shard"] for row in json.loads(ask(gateway, "partitions", "--json", over="socket").out)["partitions"]
    } == {0, 1}
    table = ask(gateway, "topics", "--topic", "mill/#", over="rest").out.splitlines()
    assert table[0].split() == ["topic", "stream", "partition", "records", "records/s"] and "mill/1" in table[1]


def test_an_action_is_done_over_either_and_says_to_how_many(gateway: Gateway) -> None:
    for over in ("socket", "rest"):
        done = ask(gateway, "ban", "--kind", "client", "--name", "eve", "--seconds", "60", "--json", over=over)
        assert (done.status, json.loads(done.out)["done"]) == (0, 1), "without a terminal there is no question"
        assert json.loads(ask(gateway, "bans", "--json", over=over).out)["bans"][0]["name"] == "eve"
        assert (
            json.loads(ask(gateway, "unban", "--kind", "client", "--name", "eve", "--json", over=over).out)["done"] == 1
        )


@pytest.mark.parametrize("over", ["socket", "rest"])
def test_what_the_broker_refuses_is_said_in_its_words(gateway: Gateway, over: str) -> None:
    refused = ask(gateway, "reset", "--client", "away", "--start", "yesterday", over=over)
    assert refused.status == 1 and not refused.out and "yesterday" in refused.err


def test_records_are_read_over_rest_only(gateway: Gateway) -> None:
    found = ask(gateway, "records", "--topic", "plant/#", "--json", over="rest")
    assert len(json.loads(found.out)["records"]) == 3
    refused = ask(gateway, "records", "--topic", "plant/#", over="socket")
    assert refused.status == 1 and "--url" in refused.err and "rumqd log read" in refused.err


def test_a_context_names_the_broker_and_its_token(gateway: Gateway, tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    secret = gateway.secrets["reader"]
    added = rumqd(
        "context", "add", "b", "--url", f"http://127.0.0.1:{gateway.port}", "--token-stdin", env=env,
        stdin=secret.encode() + b"\n",
    )  # fmt: skip
    assert (added.status, added.out, added.err) == (0, "", "")
    assert json.loads(rumqd("ask", "me", "--context", "b", "--json", env=env).out)["name"] == "reader"
    assert rumqd("context", "use", "b", env=env).status == 0
    assert json.loads(rumqd("ask", "topics", "--json", env=env).out)["left_out"] == 0
    refused = rumqd("ask", "drain", env=env)
    assert refused.status == 1 and "another role" in refused.err
    assert secret not in refused.err


def test_watch_asks_again(gateway: Gateway) -> None:
    import subprocess

    from tests.cli.conftest import ENVIRONMENT, command

    words = ("ask", "topics", "--json", "--watch", "0.1", "--data", str(gateway.broker.data))
    with subprocess.Popen(command(*words), stdout=subprocess.PIPE, env=ENVIRONMENT, text=True) as asking:
        assert asking.stdout is not None
        for _ in range(3):
            assert len(json.loads(asking.stdout.readline())["topics"]) == 4
        asking.terminate()


def test_watching_events_prints_only_new_ones(gateway: Gateway) -> None:
    import subprocess

    from tests.cli.conftest import ENVIRONMENT, command

    words = (
        "ask",
        "events",
        "--event",
        "client.*",
        "--json",
        "--watch",
        "0.1",
        "--data",
        str(gateway.broker.data),
    )
    with subprocess.Popen(command(*words), stdout=subprocess.PIPE, env=ENVIRONMENT, text=True) as asking:
        assert asking.stdout is not None
        seen = {row["cursor"] for row in json.loads(asking.stdout.readline())["events"]}
        assert rumqd("pub", "-p", str(gateway.broker.address.port), "a", "-m", "b", "-i", "newcomer").status == 0
        fresh = json.loads(asking.stdout.readline())["events"]
        assert fresh[0]["fields"]["client_id"] == "newcomer" and not seen & {row["cursor"] for row in fresh}
        asking.terminate()
