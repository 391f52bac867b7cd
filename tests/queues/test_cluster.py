"""Three nodes, a door at each: the leader of a shard is killed while messages are pushed and consumed.

Nothing acknowledged is lost, no id is used twice, an id has one content, channels survive. docs/reference/queues.md,
"Guarantees"."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from rumq.gateway.broker.cluster_client import ClusterClient
from rumq.process.wiring.queue_ports import queue_ports
from rumq.queues import ChannelSettings, Push, QueueError, Queues, QueueSettings
from rumq.settings.table import Data, Settings
from rumq.settings.table import queues as queues_table
from rumq.settings.table.cluster import Cluster
from tests.cluster.live.cluster import LiveCluster
from tests.cluster.live.gaps import gap_of, quantile
from tests.queues.traffic import Traffic
from tests.queues.world import until

KILLS = int(os.environ.get("RUMQ_QUEUE_KILLS", "2"))
KILL_SECONDS_MAX = 60

pytestmark = pytest.mark.skipif(
    shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None,
    reason="etcd is not installed: apt-get install etcd-server",
)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveCluster]:
    made = LiveCluster(
        tmp_path / "cluster", settings=("gateway.port=-1", "gateway.host=127.0.0.1", "queues.enabled=true")
    )
    made.start()
    yield made
    made.stop()


def door_at(live: LiveCluster, number: int) -> Queues:
    node = live.nodes[number]
    settings = Settings(
        data=Data(dir=str(node.data)),
        cluster=Cluster(name="demo", node=node.name),
        queues=queues_table.Queues(enabled=True),
    )
    ask = ClusterClient(str(node.data)).ask
    return Queues(queue_ports(settings, "door", lambda: None, ask, lambda *_, **__: None))


@pytest.mark.timeout(180 + KILL_SECONDS_MAX * KILLS)
def test_a_leader_that_is_killed_loses_nothing_of_queues(live: LiveCluster) -> None:
    """Prints for how long the doors of the other nodes had no acknowledgement, and no message to consume."""

    async def main() -> None:
        doors = [door_at(live, number) for number in range(3)]
        gaps: list[tuple[float, float]] = []
        with trio.fail_after(140 + KILL_SECONDS_MAX * KILLS):
            async with trio.open_nursery() as nursery:
                for each in doors:
                    await nursery.start(each.run)
                await doors[0].create_queue("", "load", QueueSettings(records_max=0))
                settings = ChannelSettings(visible_seconds=5.0, tries_max=0)
                made = await doors[1].create_channel("", "load", settings=settings)
                idle = await doors[2].create_channel("", "load", "t1")
                traffic = Traffic("load", made.definition.channel_id)
                for number, door in enumerate(doors):
                    await until(partial(knows, door, made.definition.channel_id))
                    nursery.start_soon(traffic.push, door, f"p{number}")
                    nursery.start_soon(traffic.consume, door, 50, f"p{number}")
                await until(lambda: len(traffic.consumed) > 200)
                for _ in range(KILLS):
                    gaps.append(await kill_a_leader(live, traffic))
                print("gaps", *(f"{pushed:.3f}/{consumed:.3f}" for pushed, consumed in gaps))
                for what, found in zip(("push", "consume"), zip(*gaps, strict=True), strict=True):
                    tell = [quantile(found, 0.5), quantile(found, 0.99), max(found)]
                    print(f"{what}: {len(found)} gaps, p50, p99 and worst in s", *(f"{each:.3f}" for each in tell))
                traffic.is_over = True
                await until(lambda: not traffic.lost, 60)
                traffic.check()
                await everything_waited(doors, idle.definition.channel_id, traffic)
                nursery.cancel_scope.cancel()

    trio.run(main)


async def kill_a_leader(live: LiveCluster, traffic: Traffic) -> tuple[float, float]:
    """Once it is back and all doors push again. returns: the longest gaps of pushes and of messages to consume, in
    seconds, of the doors of the others"""
    victim = (await trio.to_thread.run_sync(live.leaders))[0]
    began, before = time.monotonic(), len(traffic.consumed)
    os.kill(victim.pid, signal.SIGKILL)
    await until(lambda: not victim.is_alive, KILL_SECONDS_MAX)
    await until(partial(more_than, traffic, before + 300), KILL_SECONDS_MAX)
    await until(lambda: all(each.is_alive for each in live.nodes), KILL_SECONDS_MAX)
    back = time.monotonic()

    def all_go_on() -> bool:
        ends = [traffic.pushed_at[f"p{n}"][-1:] + traffic.consumed_at[f"p{n}"][-1:] for n in range(len(live.nodes))]
        return all(min(each) > back for each in ends)

    await until(all_go_on, KILL_SECONDS_MAX)
    others = [f"p{number}" for number, each in enumerate(live.nodes) if each is not victim]
    pushed = max(gap_of(traffic.pushed_at[name], began, back) for name in others)
    consumed = max(gap_of(traffic.consumed_at[name], began, back) for name in others)
    return pushed, consumed


async def knows(door: Queues, channel_id: str) -> bool:
    try:
        await door.channel("", channel_id)
    except QueueError:
        return False
    return True


async def everything_waited(doors: list[Queues], channel_id: str, traffic: Traffic) -> None:
    """The channel that nobody consumed has all of its topic, through whichever door."""
    wanted = {payload for payload, found in traffic.acknowledged.items() if found is not None and found.topic == "t1"}
    found: set[bytes] = set()
    for door in doors:
        try:
            async with door.consume("", channel_id, 1000) as consumer:
                while batch := await consumer.next_batch(1000, 3.0):
                    for each in batch:
                        found.add(each.payload)
                        assert traffic.ids.get(each.id, {each.payload}) == {each.payload}
                    await consumer.acknowledge([each.id for each in batch])
        except QueueError:
            continue
    assert not wanted - found, f"{len(wanted - found)} of {len(wanted)} are gone from the channel that waited"


@pytest.mark.timeout(120)
def test_definitions_are_the_same_at_every_node(live: LiveCluster) -> None:
    async def main() -> None:
        doors = [door_at(live, number) for number in range(3)]
        with trio.fail_after(90):
            async with trio.open_nursery() as nursery:
                for each in doors:
                    await nursery.start(each.run)
                await doors[0].create_queue("", "News")
                for each in doors:
                    await until(partial(has_queue, each, "NEWS"))
                made = await doors[1].create_channel("", "news")
                await until(partial(knows, doors[2], made.definition.channel_id))
                pushed = await doors[2].push("", "news", [Push(payload=b"%d" % n) for n in range(30)])
                async with doors[0].consume("", made.definition.channel_id) as consumer:
                    found: dict[str, bytes] = {}
                    while len(found) < 30:
                        batch = await consumer.next_batch(30, 20.0)
                        assert batch
                        found |= {str(each.id): each.payload for each in batch}
                        await consumer.acknowledge([each.id for each in batch])
                told = {str(getattr(each, "id", None)): b"%d" % n for n, each in enumerate(pushed)}
                assert found == told
                await doors[2].delete_queue("", "news")
                for each in doors:
                    await until(partial(lacks_queue, each, "news"))
                nursery.cancel_scope.cancel()

    trio.run(main)


async def has_queue(door: Queues, label: str) -> bool:
    return any(each.definition.label == label.lower() for each in await door.queues(""))


async def lacks_queue(door: Queues, label: str) -> bool:
    return not await has_queue(door, label)


def more_than(traffic: Traffic, count: int) -> bool:
    return len(traffic.consumed) > count
