"""`python -m tests.kafka.kills`: consumers in groups while consumers, the Kafka server and the broker are killed.

Messages are published all the time, acknowledged. In the end each group has read each of them at least once, and what a
group has committed never went back. The short form is in `test_groups`. Exit status: 1 for anything else."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from itertools import chain
from pathlib import Path
from typing import Any

import confluent_kafka as kafka
from confluent_kafka.admin import AdminClient

from bench.peers.peer import free_port
from tests.kafka.conftest import KafkaBroker, kafka_broker
from tests.kafka.published import publish_all
from tests.kafka.test_groups import Consumer, Place, server_of

PARTITIONS = 4
MESSAGES_A_SECOND = 50
SECONDS_MAX = 60.0  # until all that was published is read
Offsets = dict[int, int]


class GroupOfConsumers:
    """committed: the highest offsets that were seen; went_back: how often one was lower"""

    def __init__(self, name: str, address: str, count: int) -> None:
        self.name, self._address = name, address
        self._found: list[list[Place]] = []
        self._consumers: list[Consumer] = []
        self.committed: Offsets = {}
        self.went_back = self.kills = self.looks = 0
        for _ in range(count):
            self.begin_one()

    def begin_one(self) -> None:
        self._consumers.append(Consumer(self._address, self.name, f"c{len(self._found)}"))
        self._found.append(self._consumers[-1].found)

    def kill_one(self, chance: random.Random) -> None:
        self._consumers.pop(chance.randrange(len(self._consumers))).kill()
        self.kills += 1
        self.begin_one()

    @property
    def read(self) -> set[Place]:
        return set(chain(*self._found))

    @property
    def count(self) -> int:
        """With what was read again."""
        return sum(map(len, self._found))

    def look(self, admin: Any) -> None:
        """At what is committed now; nothing where nobody answers."""
        try:
            [found] = admin.list_consumer_group_offsets([kafka.ConsumerGroupTopicPartitions(self.name)]).values()
            offsets = {each.partition: each.offset for each in found.result(2).topic_partitions}
        except (kafka.KafkaException, TimeoutError):
            return
        self.looks += 1
        for partition, before in self.committed.items():
            self.went_back += offsets.get(partition, -1) < before
        self.committed |= offsets

    def end(self) -> None:
        for each in self._consumers:
            each.kill()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, metavar="N", help="[200]")
    parser.add_argument("--every", type=float, default=5.0, metavar="S", help="seconds between two [5]")
    parser.add_argument("--groups", type=int, default=10, metavar="N", help="[10]")
    parser.add_argument("--consumers", type=int, default=5, metavar="N", help="of a group [5]")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of who is killed [1]")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        flags = ("--shards", str(PARTITIONS), "--set", f"kafka.port={free_port()}")
        with kafka_broker(Path(folder) / "data", *flags) as broker:
            return run(broker, args)


def run(broker: KafkaBroker, args: argparse.Namespace) -> int:
    chance = random.Random(args.seed)
    publish_all(broker.process.address, [(f"plant/{n}", b"%d" % n, {}) for n in range(100)])
    groups = [GroupOfConsumers(f"g{number}", broker.address, args.consumers) for number in range(args.groups)]
    servers = brokers = published = 0
    try:
        for number in range(args.kills):
            ends = time.monotonic() + args.every
            published += publish_until(broker, ends, published)
            who = chance.random()
            if who < 0.2:
                os.kill(server_of(broker.process.process.pid), signal.SIGKILL)
                servers += 1
                broker.reach(1 + servers)
            elif who < 0.25:
                broker.process.kill()
                brokers += 1
                servers = 0
                broker.start()
            else:
                chance.choice(groups).kill_one(chance)
            admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
            for each in groups:
                each.look(admin)
            print(f"{number + 1} kills, {published + 100} published", end="\r", file=sys.stderr, flush=True)
        return report(broker, groups, published + 100, brokers, args.kills)
    finally:
        for each in groups:
            each.end()
        broker.process.events[:] = [each for each in broker.process.events if each["event"] != "kafka.died"]


def publish_until(broker: KafkaBroker, ends: float, first: int) -> int:
    count = 0
    while time.monotonic() < ends:
        some = range(first + count, first + count + MESSAGES_A_SECOND // 5)
        publish_all(broker.process.address, [(f"plant/{n % 100}", b"%d" % n, {}) for n in some])
        count += len(some)
        threading.Event().wait(0.2)
    return count


def report(broker: KafkaBroker, groups: list[GroupOfConsumers], published: int, brokers: int, asked: int) -> int:
    until = time.monotonic() + SECONDS_MAX
    wanted: set[Place] = set()
    while time.monotonic() < until:
        wanted = {(partition, lsn) for partition, lsn, *_ in broker.rows()}
        if len(wanted) >= published and all(wanted <= each.read for each in groups):
            break
        threading.Event().wait(0.5)
    skipped = sum(len(wanted - each.read) for each in groups)
    back = sum(each.went_back for each in groups)
    again = sum(each.count - len(each.read) for each in groups)
    kills = sum(each.kills for each in groups)
    print(f"{kills} consumers and {brokers} brokers killed; {len(wanted)} of {published} records in the log")
    looks = min(each.looks for each in groups)
    print(f"{skipped} skipped, {again} read again, of {len(groups) * len(wanted)}; commits went back {back} times")
    print(f"commits were looked at {looks} times or more, of {asked} times")
    return 0 if not skipped and not back and len(wanted) >= published and looks > asked // 2 else 1


if __name__ == "__main__":
    sys.exit(main())
