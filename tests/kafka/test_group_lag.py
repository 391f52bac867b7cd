"""How far groups are behind, told by the server as a process: `rumqd ask` at its socket and over REST, beside what
Kafka's own client is told. docs/guides/kafka.md, "Groups" """

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import rumqd
from tests.gateway.conftest import started
from tests.kafka.conftest import KafkaBroker
from tests.kafka.published import publish_all
from tests.kafka.test_clients import SECONDS, module
from tests.tries import tries

RECORDS, READ = 50, 20


class Site(NamedTuple):
    """address: of Kafka's clients; data: the broker's directory; url: of its gateway; secrets: by name of the token"""

    address: str
    data: str
    url: str
    secrets: dict[str, str]

    def ask(self, *words: str) -> Any:
        """At the socket and over REST, which say the same."""
        found = []
        for source in (("--data", self.data), ("--url", self.url)):
            done = rumqd("ask", *words, "--json", *source, env={"RUMQ_TOKEN": self.secrets["ops"]})
            assert done.status == 0, done.err
            found.append(json.loads(done.out))
        assert found[0] == found[1]
        return found[0]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    gateway = started(tmp_path_factory.mktemp("lag"), "kafka.port=-1", "kafka.host=127.0.0.1", shards=2)
    kafka = KafkaBroker(gateway.broker)
    kafka.reach()
    publish_all(gateway.broker.address, [(f"plant/{n}", b"%d" % n, {}) for n in range(RECORDS)])
    yield Site(kafka.address, str(gateway.broker.data), f"http://127.0.0.1:{gateway.port}", gateway.secrets)
    gateway.broker.end()


def test_the_lag_of_a_group_is_what_kafkas_client_computes(site: Site) -> None:
    kafka = module("confluent_kafka")
    settings = {"bootstrap.servers": site.address, "group.id": "watchers", "client.id": "one",
                "auto.offset.reset": "earliest", "enable.auto.commit": False}  # fmt: skip
    consumer = kafka.Consumer(settings)
    consumer.subscribe(["main"])
    read = 0
    for _ in tries(SECONDS):
        if (message := consumer.poll(0.2)) is not None and message.error() is None:
            consumer.commit(message, asynchronous=False)
            read += 1
        if read == READ:
            break
    assigned = consumer.assignment()
    wanted = {}
    for place in consumer.committed(assigned, SECONDS):
        end = consumer.get_watermark_offsets(place, SECONDS)[1]
        committed = place.offset if place.offset >= 0 else None
        wanted[place.partition] = (committed, end, None if committed is None else end - committed)
    rows = site.ask("kafka_lag", "--group", "watchers")["partitions"]
    assert {row["partition"]: (row["committed"], row["end"], row["lag"]) for row in rows} == wanted
    assert {(row["topic"], row["client_id"], row["first"]) for row in rows} == {("main", "one", 0)}
    lag = sum(row["lag"] or 0 for row in rows)
    behind = sum(row["end"] for row in rows) - lag - READ
    assert behind == sum(row["end"] for row in rows if row["lag"] is None), "what it has read, it is not behind"
    [group] = site.ask("kafka_groups")["groups"]
    assert (group["group"], group["state"], group["members"], group["lag"]) == ("watchers", "Stable", 1, lag)
    [member] = site.ask("kafka_members", "--group", "watchers")["members"]
    assert (member["client_id"], member["host"]) == ("one", "127.0.0.1")
    assert sorted(member["partitions"]) == sorted(f"{each.topic}/{each.partition}" for each in assigned)
    consumer.close()
    [group] = site.ask("kafka_groups", "--group", "watch*")["groups"]
    assert (group["state"], group["members"], group["lag"]) == ("Empty", 0, lag)
    assert {row["client_id"] for row in site.ask("kafka_lag", "--group", "watchers")["partitions"]} == {""}


def test_an_operator_reads_a_table_and_a_sentence(site: Site) -> None:
    committed = rumqd("ask", "kafka_groups", "--data", site.data)
    assert committed.out.split()[:4] == ["user", "group", "state", "protocol"] and committed.status == 0
    missing = rumqd("ask", "kafka_lag", "--group", "nobodys", "--data", site.data)
    assert missing.status == 1 and "there is no group nobodys of clients without a login" in missing.err
    missing = rumqd(
        "ask", "kafka_lag", "--group", "nobodys", "--url", site.url, env={"RUMQ_TOKEN": site.secrets["ops"]}
    )
    assert missing.status == 1 and "there is no group nobodys" in missing.err
    refused = rumqd("ask", "kafka_groups", "--url", site.url, env={"RUMQ_TOKEN": site.secrets["reader"]})
    assert refused.status == 1 and "another role" in refused.err


def test_without_a_kafka_server_it_is_said_how_to_have_one(tmp_path: Any) -> None:
    done = rumqd("ask", "kafka_groups", "--data", str(tmp_path))
    assert done.status == 1 and "kafka.port turns it on" in done.err


@pytest.mark.parametrize("over", ["data", "url"])
def test_a_group_is_moved_and_deleted_and_its_consumer_begins_there(over: str, site: Site) -> None:
    kafka = module("confluent_kafka")
    source = ("--data", site.data) if over == "data" else ("--url", site.url)
    group = f"moved-{over}"

    def do(*words: str) -> Any:
        return rumqd("ask", *words, "--group", group, "--yes", *source, env={"RUMQ_TOKEN": site.secrets["ops"]})

    assert do("reset_kafka_group", "--topic", "main", "--to", "latest").out.split() == ["done", "2"]
    assert {each["lag"] for each in site.ask("kafka_lag", "--group", group)["partitions"]} == {0}
    assert do("reset_kafka_group", "--topic", "main", "--partition", "0", "--to", "3").status == 0
    consumer = kafka.Consumer({"bootstrap.servers": site.address, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe(["main"])
    first = next(each for _ in tries(SECONDS) if (each := consumer.poll(0.2)) is not None)
    assert (first.partition(), first.offset()) == (0, 3)
    refused = do("delete_kafka_group")
    assert refused.status == 1 and "stop its consumers first" in refused.err
    consumer.close()
    assert do("delete_kafka_group").status == 0
    assert group not in [each["group"] for each in site.ask("kafka_groups")["groups"]]
