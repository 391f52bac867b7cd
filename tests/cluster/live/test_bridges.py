"""A bridge of three nodes while the node that runs it is killed, paused and moved, and messages are published both
ways: none is lost, none of QoS 2 is there twice, and one node at a time relays."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

import rumq
from examples.cluster import Member, tree
from rumq.client import connect
from rumq.embedded.broker import BlockingBroker
from rumq.errors import RumqError
from rumq.net.client_placement import home_of
from rumq.process.bridge.bridge_settings import local_client_id
from tests.bridge.cuts.ledger import Found, Logged, compare
from tests.bridge.cuts.run import IN, OUT, RULES, publishing
from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster, maybe_shard_pid, pause, signal_all
from tests.process.bridge.test_bridge_process import Heard, bridge, hear, mosquitto
from tests.tries import tries

SECONDS = 60.0  # for what takes some on a machine that does nothing else
CENTRE, MOSQUITTO = "centre", "mosquitto"  # names of bridges
OUT_M = {f"m-out/{qos}/{n}": (f"m-out/{qos}/{n}", qos) for qos in (1, 2) for n in range(3)}
IN_M = {f"m-in/{qos}/{n}": (f"m-in/{qos}/{n}", qos) for qos in (1, 2) for n in range(3)}
RULES_M = ("m-out/1/# out 1", "m-out/2/# out 2", "m-in/1/# in 1", "m-in/2/# in 2")

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="etcd is not installed"
    ),
]


class Site:
    """Three nodes with a bridge to the broker `centre`, by a file of settings that all of them have.

    name: of the bridge that is looked at"""

    def __init__(self, folder: Path, centre: BlockingBroker) -> None:
        self.live, self.centre, self.name = LiveCluster(folder, settings=["sys.interval_seconds=1"]), centre, CENTRE
        self._config = folder / "bridges.toml"
        self.configure(bridge(centre.url, *RULES, name=CENTRE, inflight_max=50))
        for each in self.live.nodes:
            each.command += ["--config", str(self._config)]
        self.live.start()

    def configure(self, *bridges: dict[str, Any]) -> None:
        sections = ("".join(f"{key} = {json.dumps(value)}\n" for key, value in each.items()) for each in bridges)
        self._config.write_text("".join(f"[[bridge]]\n{each}" for each in sections))

    def reload(self) -> None:
        for each in self.live.nodes:
            os.kill(each.pid, signal.SIGHUP)

    @property
    def awake(self) -> list[Member]:
        held = self.live.cluster.held
        return [each for each in self.live.nodes if each.is_alive and each.name not in held]

    @property
    def urls(self) -> list[str]:
        return [f"mqtt://{each.address}" for each in self.live.nodes]

    def runner(self) -> Member:
        """The node whose bridge is connected; the others name it."""
        told: list[tuple[Member, Any, str]] = []
        for _ in tries(SECONDS):
            asked = [(each, rumqd("bridge", "status", "--json", "--data", str(each.data))) for each in self.awake]
            told = [(node, json.loads(said.out).get(self.name, {}).get("up"), said.err) for node, said in asked]
            here = [node for node, is_up, _ in told if is_up]
            if len(here) == 1 and all(
                node is here[0] or err == f"node {here[0].name} runs the bridges: ask there\n" for node, _, err in told
            ):
                return here[0]
        raise AssertionError([(node.name, is_up, err) for node, is_up, err in told])

    def sessions(self) -> tuple[int, int]:
        """Of bridges, in the cluster and at the centre."""
        here, there = (
            rumqd("ask", "clients", "--json", "--data", str(each)).out.count("rumq-bridge/")
            for each in (self.awake[0].data, self.centre.data)
        )
        return here, there

    def move(self, shard: int) -> None:
        """Another node leads it."""
        leader = str(self.live.shard_records()[shard]["leader"]).partition("#")[0]
        to = next(each for each in self.awake if each.name != leader)
        assert rumqd("cluster", "move", str(shard), "--to", to.name, "--data", str(to.data)).status == 0

    def bridge_process(self, node: Member) -> int:
        for _ in tries(SECONDS):
            for pid in tree(node.pid):
                with contextlib.suppress(psutil.Error):
                    if "bridge" in psutil.Process(pid).cmdline():
                        return pid
        raise AssertionError(f"{node.name} has no process of bridges")

    @contextlib.contextmanager
    def without(self, node: Member) -> Iterator[None]:
        """While it stays down, or is paused."""
        self.live.cluster.held.add(node.name)
        try:
            yield
        finally:
            self.live.cluster.held.discard(node.name)

    def serves(self) -> None:
        for number in range(len(self.live.nodes)):
            assert any(self.live.cluster.serves(number, 0) for _ in tries(SECONDS))

    def settled(self, look: Callable[[Found, str], None]) -> Found:
        """The ledger of both logs, once it is right, or nothing changes it any more. look: compares, at a node"""
        found, said, same = Found(), "", 0
        for _ in tries(SECONDS):
            found = Found()
            with contextlib.suppress(RumqError, OSError):
                look(found, f"mqtt://{self.awake[0].address}")
            said, same = repr(found), same + 1 if repr(found) == said else 0
            if found.is_right_with_others and found.messages and same:
                break
        return found


def replayed(url: str, topic_filter: str) -> Logged:
    """What a broker's log has."""

    async def main() -> Logged:
        async with connect(url) as client:
            return [(each.topic, each.payload.decode()) async for each in client.replay(topic_filter)]

    return trio.run(main)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with rumq.broker() as centre:
        made = Site(tmp_path_factory.mktemp("bridges"), centre)
        try:
            yield made
        finally:
            made.live.stop()


def kill_node(site: Site) -> None:
    node = site.runner()
    with site.without(node):
        signal_all(pause(node), signal.SIGKILL)
        assert site.runner() is not node
    site.serves()


def kill_shard(site: Site) -> None:
    """The bridge's process beside it lives on."""
    pid = None
    for _ in tries(SECONDS):
        if (pid := maybe_shard_pid(site.runner(), 0)) is not None:
            break
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def kill_bridge(site: Site) -> None:
    os.kill(site.bridge_process(site.runner()), signal.SIGKILL)


def kill_centre(site: Site) -> None:
    """The other broker."""
    site.centre.kill()
    site.centre.restart()


def move_bridge(site: Site) -> None:
    site.move(0)


def move_session(site: Site) -> None:
    site.move(home_of(local_client_id(site.name), site.live.cluster.shards))


def pause_node(site: Site) -> None:
    """It wakes up beside a successor."""
    node = site.runner()
    stopped = pause(node)
    try:
        with site.without(node):
            assert site.runner() is not node
    finally:
        signal_all(stopped, signal.SIGCONT)


def pause_bridge_alone(site: Site) -> None:
    """It holds its connections, and wakes up beside a successor on another node that has taken them."""
    node = site.runner()
    pid = site.bridge_process(node)
    os.kill(pid, signal.SIGSTOP)
    try:
        with site.without(node):
            for _ in tries(SECONDS):
                site.move(0)
                if str(site.live.shard_records()[0]["leader"]).partition("#")[0] != node.name:
                    break
            assert site.runner() is not node
    finally:
        os.kill(pid, signal.SIGCONT)


HARMS: tuple[Callable[[Site], None], ...] = (
    kill_node, kill_centre, move_bridge, kill_bridge, pause_node, move_session, kill_shard, pause_bridge_alone,
    move_bridge,
)  # fmt: skip


def test_each_message_is_relayed_as_promised_while_the_bridge_is_killed_paused_and_moved(site: Site) -> None:
    site.runner()
    for url in site.urls:
        hear(url, f"$SYS/broker/connection/{CENTRE}/state", b"1")
    with publishing(site.urls, OUT) as out, publishing(site.centre.url, IN) as back:
        for harm in HARMS:
            harm(site)
        site.runner()
    assert out.sent > 100 and back.sent > 100

    def look(found: Found, here: str) -> None:
        compare(found, replayed(here, "out/#"), replayed(site.centre.url, "edge/#"), OUT)
        compare(found, replayed(site.centre.url, "in/#"), replayed(here, "in/#"), IN)

    found = site.settled(look)
    assert found.is_right, found


def test_a_reload_begins_one_to_mosquitto_which_goes_on_while_its_node_is_killed_and_paused(
    site: Site, tmp_path: Path
) -> None:
    with mosquitto(tmp_path) as (url, _):
        site.configure(
            bridge(site.centre.url, *RULES, name=CENTRE, inflight_max=50), bridge(url, *RULES_M, name=MOSQUITTO)
        )
        site.reload()
        site.name = MOSQUITTO
        site.runner()
        heard = Heard(url)
        try:
            with publishing(site.urls, OUT_M) as out, publishing(url, IN_M) as back:
                for harm in (pause_bridge_alone, kill_node, pause_node, move_bridge):
                    harm(site)
                site.runner()
            assert out.sent > 100 and back.sent > 100

            def look(found: Found, here: str) -> None:
                messages = list(heard.messages)
                compare(found, replayed(here, "m-out/#"), messages, OUT_M)
                compare(found, messages, replayed(here, "m-in/#"), IN_M)

            found = site.settled(look)
        finally:
            heard.end()
            site.name = CENTRE
        assert found.is_right_with_others, found


def test_a_reload_ends_the_sessions_of_one_that_has_left_the_settings(site: Site) -> None:
    """Whichever node runs them."""
    kept = bridge(site.centre.url, "later/# out 2", name="later")
    site.configure(bridge(site.centre.url, *RULES, name=CENTRE, inflight_max=50), kept)
    site.reload()
    assert any(site.sessions() == (2, 2) for _ in tries(SECONDS)), site.sessions()
    site.move(0)
    site.runner()
    site.configure(kept)
    site.reload()
    assert any(site.sessions() == (1, 1) for _ in tries(SECONDS)), site.sessions()
    site.name = "later"
    site.move(0)
    site.runner()
    assert site.sessions() == (1, 1)
