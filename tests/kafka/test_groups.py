"""Consumer groups with the clients of others: shared, taken over, committed, and kept when something is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.peers.peer import free_port
from commitlog import RealFiles
from commitlog.read.backup import Backup, restore
from rumq.auth.credentials.hashes import argon2id
from rumq.kafka.groups.commit_entries import Commit
from rumq.kafka.groups.commit_file import CommitFile
from tests.cli.conftest import ENVIRONMENT
from tests.kafka.conftest import KafkaBroker, kafka_broker
from tests.kafka.java_client import in_java
from tests.kafka.node_client import in_node
from tests.kafka.published import publish_all
from tests.kafka.test_clients import SECONDS, module
from tests.kafka.test_process import secrets
from tests.tries import tries

RECORDS, PARTITIONS = 200, 2
Place = tuple[int, int]  # partition, offset


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    data = tmp_path_factory.mktemp("kafka") / "data"
    with kafka_broker(data, "--shards", str(PARTITIONS)) as found:
        publish(found, 0, RECORDS)
        yield found


def publish(broker: KafkaBroker, first: int, count: int) -> None:
    publish_all(broker.process.address, [(f"plant/{n % 50}", b"%d" % n, {}) for n in range(first, first + count)])


def places(broker: KafkaBroker, count: int) -> list[Place]:
    return next(
        [(partition, lsn) for partition, lsn, *_ in found] for _ in tries() if len(found := broker.rows()) >= count
    )


def by_confluent(address: str, group: str, wanted: int, **settings: Any) -> list[Place]:
    kafka = module("confluent_kafka")
    more = {name.replace("_", "."): value for name, value in settings.items()}
    consumer = kafka.Consumer({"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"} | more)
    consumer.subscribe(["main"])
    found: list[Place] = []
    for _ in tries(SECONDS):
        found += [(each.partition(), each.offset()) for each in consumer.consume(500, 0.2) if each.error() is None]
        if len(found) >= wanted:
            break
    consumer.close()
    return found


def by_aiokafka(address: str, group: str, wanted: int) -> list[Place]:
    import asyncio

    kafka = module("aiokafka")

    async def run() -> list[Place]:
        consumer = kafka.AIOKafkaConsumer(
            "main", bootstrap_servers=address, group_id=group, auto_offset_reset="earliest"
        )
        await consumer.start()
        found: list[Place] = []
        while len(found) < wanted:
            for some in (await consumer.getmany(timeout_ms=200)).values():
                found += [(each.partition, each.offset) for each in some]
        await consumer.stop()
        return found

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


def by_kafka_python(address: str, group: str, wanted: int) -> list[Place]:
    kafka = module("kafka")
    consumer = kafka.KafkaConsumer(
        "main", bootstrap_servers=address, group_id=group, auto_offset_reset="earliest",
        consumer_timeout_ms=SECONDS * 1000,
    )  # fmt: skip
    found = [(each.partition, each.offset) for _, each in zip(range(wanted), consumer, strict=False)]
    consumer.commit()
    consumer.close()
    return found


def by_java(address: str, group: str, wanted: int) -> list[Place]:
    found = in_java("read", address, "main", wanted, group_id=group)
    return [(each["partition"], each["offset"]) for each in found]


@pytest.mark.parametrize("read", [by_confluent, by_aiokafka, by_kafka_python, by_java])
def test_a_group_reads_everything_once_and_goes_on_where_it_was(
    read: Callable[[str, str, int], list[Place]], broker: KafkaBroker
) -> None:
    before = places(broker, RECORDS)
    group = read.__name__
    assert sorted(read(broker.address, group, len(before))) == before
    publish(broker, len(before), 20)
    after = places(broker, len(before) + 20)
    assert sorted(read(broker.address, group, 20)) == sorted(set(after) - set(before))


@pytest.mark.node
@pytest.mark.parametrize("script", ["kafkajs_group.mjs", "platformatic_group.mjs"])
def test_clients_of_node_read_in_a_group(script: str, broker: KafkaBroker) -> None:
    wanted = places(broker, RECORDS)
    found = in_node(script, broker.address, str(len(wanted)))
    assert sorted(map(tuple, found)) == wanted


def test_tools_list_describe_move_and_delete_groups(broker: KafkaBroker) -> None:
    kafka, admin = module("confluent_kafka"), module("confluent_kafka.admin")
    wanted = places(broker, RECORDS)
    by_confluent(broker.address, "tooled", len(wanted))
    client = admin.AdminClient({"bootstrap.servers": broker.address})
    listed = client.list_consumer_groups().result(SECONDS)
    assert "tooled" in [each.group_id for each in listed.valid] and not listed.errors
    [described] = client.describe_consumer_groups(["tooled"]).values()
    assert described.result(SECONDS).state == kafka.ConsumerGroupState.EMPTY

    def offsets() -> dict[int, int]:
        asked = kafka.ConsumerGroupTopicPartitions("tooled")
        [found] = client.list_consumer_group_offsets([asked]).values()
        return {each.partition: each.offset for each in found.result(SECONDS).topic_partitions}

    assert offsets() == {number: max(lsn for each, lsn in wanted if each == number) + 1 for number in range(PARTITIONS)}
    moved = kafka.ConsumerGroupTopicPartitions("tooled", [kafka.TopicPartition("main", 0, 3)])
    [done] = client.alter_consumer_group_offsets([moved]).values()
    done.result(SECONDS)
    assert offsets()[0] == 3
    [deleted] = client.delete_consumer_groups(["tooled"]).values()
    deleted.result(SECONDS)
    assert offsets() == {} and "tooled" not in [
        each.group_id for each in client.list_consumer_groups().result(SECONDS).valid
    ]


def test_a_backup_has_what_was_committed(broker: KafkaBroker, tmp_path: Path) -> None:
    wanted = places(broker, RECORDS)
    by_confluent(broker.address, "kept", len(wanted))
    backup, again = str(tmp_path / "backup"), str(tmp_path / "again")
    Backup(str(broker.process.data), backup).run("now")
    restore(backup, again)
    found = [each for each in CommitFile(RealFiles(), again).read() if each.group == "kept"]
    ends = {number: max(lsn for each, lsn in wanted if each == number) + 1 for number in range(PARTITIONS)}
    assert {each.partition: each.offset for each in found if isinstance(each, Commit)} == ends
    with kafka_broker(Path(again), "--shards", str(PARTITIONS)) as second:
        publish(second, len(wanted), 5)
        assert len(by_confluent(second.address, "kept", 5)) == 5


class Consumer:
    """`group_program` as a process. found: what it has printed"""

    def __init__(self, address: str, group: str, client_id: str, instance: str = "-") -> None:
        program = [sys.executable, "-m", "tests.kafka.group_program", address, group, client_id, instance]
        self._process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        self.found: list[Place] = []
        self._thread = threading.Thread(target=self._hear, daemon=True)
        self._thread.start()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith(b"\n"):
                partition, offset = map(int, line.split())
                self.found.append((partition, offset))

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join(SECONDS)


def test_nothing_is_skipped_when_a_member_the_server_or_the_broker_is_killed(tmp_path: Path) -> None:
    """Each record at least once; what was committed is not read again by the whole group."""
    module("confluent_kafka")
    with kafka_broker(tmp_path / "data", "--shards", str(PARTITIONS), "--set", f"kafka.port={free_port()}") as broker:
        consumers = [Consumer(broker.address, "g", f"c{number}") for number in range(2)]
        try:
            everything = [each.found for each in consumers]

            def read(count: int) -> bool:
                return any(len(set(chain(*everything))) >= count for _ in tries(SECONDS))

            publish(broker, 0, 40)
            assert read(40)
            consumers.pop().kill()
            publish(broker, 40, 40)
            assert read(80), "the other has taken over"
            os.kill(server_of(broker.process.process.pid), signal.SIGKILL)
            broker.reach(2)
            publish(broker, 80, 40)
            assert read(120)
            broker.process.kill()
            broker.start()
            consumers.append(Consumer(broker.address, "g", "c3"))
            everything.append(consumers[-1].found)
            publish(broker, 120, 40)
            assert read(160)
            assert set(chain(*everything)) == set(places(broker, 160))
            assert sum(map(len, everything)) < 260, "it does not begin anew"
        finally:
            for each in consumers:
                each.kill()


def server_of(broker: int) -> int:
    """The process of the Kafka server, below the broker's."""
    [found] = [each.pid for each in psutil.Process(broker).children(recursive=True) if "kafka" in each.cmdline()]
    return int(found)


def test_groups_are_a_users_own(tmp_path: Path) -> None:
    kafka, admin = module("confluent_kafka"), module("confluent_kafka.admin")
    users = secrets(tmp_path / "users", f"anna:{argon2id(b'a', b's' * 16)}\nben:{argon2id(b'b', b's' * 16)}\n")
    flags = ("--set", "auth.anonymous=no", "--set", f"kafka.password_file={users}", "--set", "kafka.anonymous=no")
    with kafka_broker(tmp_path / "data", *flags, "--set", "listener.anonymous=yes") as broker:
        publish(broker, 0, 10)
        logins = {
            user: {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": user,
                   "sasl.password": user[0]}
            for user in ("anna", "ben")
        }  # fmt: skip
        for login in logins.values():
            consumer = kafka.Consumer(
                login | {"bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "earliest"}
            )
            consumer.subscribe(["main"])
            for offset in range(1 if login is logins["anna"] else 3):
                assert next(each for _ in tries() if (each := consumer.poll(0.2)) is not None).offset() == offset
            consumer.close()
        for user, wanted in (("anna", 1), ("ben", 3)):
            client = admin.AdminClient(logins[user] | {"bootstrap.servers": broker.address})
            asked = kafka.ConsumerGroupTopicPartitions("g")
            [found] = client.list_consumer_group_offsets([asked]).values()
            assert [each.offset for each in found.result(SECONDS).topic_partitions] == [wanted]
