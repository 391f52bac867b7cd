"""Bridges of real brokers: each message once, whatever is killed; no message goes round; mosquitto at the other end."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

import rumq
from bench.peers.peer import free_port
from rumq.auth.credentials import hashes
from rumq.bridge.counts import FOLDER, read_figures
from rumq.client import Outgoing, connect
from rumq.embedded.broker import BlockingBroker
from rumq.errors import RumqError
from tests.broker_process import SECONDS_MAX, Rumqd
from tests.net.authorities import Authorities
from tests.net.conftest import authorities as authorities
from tests.tries import tries

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin")
CONF = """
user root
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/
max_queued_messages 0
"""


def bridge(url: str, *topics: str, name: str = "centre", **more: Any) -> dict[str, Any]:
    return {"name": name, "url": url, "topics": list(topics), "retry_seconds_max": 0.5, **more}


def publish(url: str, messages: list[tuple[str, str]], qos: int = 2) -> None:
    """Each is acknowledged when this returns."""

    async def main() -> None:
        async with connect(url, reconnect=True) as client:
            await client.publish_batch([Outgoing(topic, payload.encode(), qos) for topic, payload in messages])

    trio.run(main)


def stored(broker: BlockingBroker, topic_filter: str = "#") -> list[tuple[str, str]]:
    """Topics and payloads of the log, in its order."""
    with contextlib.suppress(LookupError, RumqError):  # none is there yet
        rows = rumq.read(broker.data, topic_filter, columns=["topic", "payload"]).to_arrow().to_pylist()
        return [(row["topic"], row["payload"].decode()) for row in rows]
    return []


def waited(look: Callable[[], Any]) -> Any:
    """What it is once it is true."""
    for _ in tries(SECONDS_MAX):
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError("it never was")


def figures(broker: BlockingBroker, name: str = "centre") -> dict[str, Any]:
    return read_figures(broker.data / FOLDER).get(name, {})


def bridge_process(broker: BlockingBroker) -> psutil.Process | None:
    with contextlib.suppress(psutil.Error):
        for each in psutil.Process(broker.events("broker.starting")[-1]["pid"]).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "bridge" in each.cmdline():
                    return each
    return None


def bridge_sessions(data: Path) -> int:
    command = [sys.executable, "-m", "rumq", "ask", "-d", str(data), "--json", "clients"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.count("rumq-bridge/")


def by_topic(messages: list[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for topic, payload in messages:
        found.setdefault(topic, []).append(payload)
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_each_message_is_there_once_and_in_order_whatever_is_killed(seed: int) -> None:
    """SIGKILL of the bridge, of its broker, of the other broker, at any moment, both ways at once."""
    chance = random.Random(seed)
    count, sent = 600, 0
    with rumq.broker(shards={"count": seed}) as centre:
        own = bridge(centre.url, 'up/# out 2 "" edge/', 'down/# in 2 "" ""', inflight_max=20)
        with rumq.broker(bridge=[own], shards={"count": 3 - seed}) as edge:
            waited(lambda: edge.events("bridge.connected"))
            for victim in ("bridge", "edge", "centre", "bridge", "centre", "edge"):
                more = range(sent, sent + count // 6)
                sent = more.stop
                publish(edge.url, [(f"up/{n % 3}", f"{n}") for n in more])
                publish(centre.url, [(f"down/{n % 3}", f"{n}") for n in more])
                time.sleep(chance.random() * 0.1)  # so that it is killed anywhere
                if victim == "bridge":
                    waited(lambda: bridge_process(edge)).kill()
                else:
                    broker = edge if victim == "edge" else centre
                    broker.kill()
                    broker.restart()
            waited(lambda: len(stored(centre, "edge/#")) >= count and len(stored(edge, "down/#")) >= count)
            waited(lambda: figures(edge).get("up"))
            wanted = [[f"{n}" for n in range(count) if n % 3 == number] for number in range(3)]
            assert by_topic(stored(centre, "edge/#")) == {f"edge/up/{n}": wanted[n] for n in range(3)}
            assert by_topic(stored(edge, "down/#")) == {f"down/{n}": wanted[n] for n in range(3)}
            assert not edge.events("bridge.doubtful", "bridge.refused")


def test_what_is_published_while_the_other_broker_is_away_arrives_once_it_is_there() -> None:
    """Also if it has never been there: the session here begins with the bridge."""
    with rumq.broker() as centre:
        centre.kill()
        with rumq.broker(bridge=[bridge(centre.url, "# out 2")]) as edge:
            waited(lambda: edge.events("bridge.lost"))
            publish(edge.url, [("plant/1", f"{n}") for n in range(50)])
            edge.kill()
            edge.restart()
            centre.restart()
            waited(lambda: len(stored(centre)) >= 50)
            assert stored(centre) == [("plant/1", f"{n}") for n in range(50)]


def test_another_address_is_used_while_the_first_one_is_away() -> None:
    """Two brokers: what was acknowledged by the first one stays there, the rest goes to the other one."""
    with rumq.broker() as first, rumq.broker() as second:
        own = bridge(first.url, "plant/# out 2", more_urls=[second.url], round_robin=True)
        with rumq.broker(bridge=[own]) as edge:
            waited(lambda: edge.events("bridge.connected"))
            publish(edge.url, [("plant/1", "one")])
            waited(lambda: len(stored(first)) >= 1)
            waited(lambda: figures(edge)["out"]["messages"] == 1)
            first.kill()
            publish(edge.url, [("plant/1", "two")])
            waited(lambda: len(stored(second)) >= 1)
            assert stored(second) == [("plant/1", "two")] and stored(first) == [("plant/1", "one")]
            assert [each["address"] for each in edge.events("bridge.connected")] == [first.url, second.url]


def test_its_state_is_retained_under_sys() -> None:
    """As who watches mosquitto's bridges expects it."""
    topic = "$SYS/broker/connection/centre/state"
    with rumq.broker() as centre, rumq.broker(bridge=[bridge(centre.url, "a/#")], sys={"interval_seconds": 1}) as edge:
        hear(edge.url, topic, b"1")
        centre.kill()
        hear(edge.url, topic, b"0")


def test_both_brokers_say_on_a_topic_whether_the_bridge_is_there() -> None:
    """By a will, so also when its process is killed."""
    with rumq.broker() as centre:
        own = bridge(centre.url, "a/#", notification_topic="bridges/edge")
        with rumq.broker(bridge=[own]) as edge:
            for each in (centre, edge):
                hear(each.url, "bridges/edge", b"1")
            waited(lambda: bridge_process(edge)).kill()
            for broker in (edge, centre):
                waited(lambda broker=broker: ("bridges/edge", "0") in stored(broker, "bridges/edge"))
            for each in (centre, edge):
                hear(each.url, "bridges/edge", b"1")
        hear(centre.url, "bridges/edge", b"0")


def hear(url: str, topic: str, payload: bytes) -> None:
    """Return once it is there, retained or not."""

    async def main() -> None:
        with trio.fail_after(SECONDS_MAX):
            async with connect(url) as client:
                await client.subscribe(topic)
                async for message in client.messages():
                    if message.payload == payload:
                        return

    trio.run(main)


def test_no_message_goes_round() -> None:
    """Three brokers in a ring, and the first two of them both ways: each message once at each."""
    ports = [free_port() for _ in range(3)]
    urls = [f"mqtt://127.0.0.1:{port}" for port in ports]
    with contextlib.ExitStack() as stack:
        brokers = [
            stack.enter_context(
                rumq.broker(listener={"port": port}, bridge=[bridge(urls[(number + 1) % 3], "plant/# out 2")])
            )
            for number, port in enumerate(ports)
        ]
        for each in brokers:
            waited(lambda each=each: figures(each).get("up"))
        sent = [("plant/1", f"{number} {n}") for number in range(3) for n in range(20)]
        for number, url in enumerate(urls):
            publish(url, sent[number * 20 : number * 20 + 20])
        # The last step of each message, to where it began, is the one that is left out.
        waited(lambda: sum(figures(each)["out"]["looped"] for each in brokers) == len(sent))
        for each in brokers:
            assert sorted(stored(each)) == sorted(sent)


def test_a_bridge_both_ways_sends_nothing_back() -> None:
    with rumq.broker() as centre, rumq.broker(bridge=[bridge(centre.url, "# both 2")]) as edge:
        waited(lambda: edge.events("bridge.connected"))
        publish(edge.url, [("plant/a", f"{n}") for n in range(20)])
        publish(centre.url, [("plant/b", f"{n}") for n in range(20)])
        waited(lambda: len(stored(edge)) >= 40 and len(stored(centre)) >= 40)
        publish(edge.url, [("plant/end", "")])
        publish(centre.url, [("plant/end", "")])
        waited(lambda: len(stored(edge, "plant/end")) >= 2 and len(stored(centre, "plant/end")) >= 2)
        assert len(stored(edge)) == len(stored(centre)) == 42


def test_a_reload_starts_changes_and_ends_bridges(tmp_path: Path) -> None:
    """What is taken out of the settings leaves no session behind, which would hold messages for nobody."""
    config = tmp_path / "config.toml"
    with rumq.broker() as centre, rumq.broker() as other:

        def configure(*bridges: tuple[str, str, str]) -> None:
            config.write_text(
                "".join(
                    f'[[bridge]]\nname = "{name}"\nurl = "{url}"\ntopics = ["{topic}"]\n'
                    for name, url, topic in bridges
                )
            )

        configure(("centre", centre.url, "a/# out 2"))
        edge = Rumqd(tmp_path / "data", "--config", str(config))
        try:
            edge.start()
            edge.heard(lambda event: event["event"] == "bridge.connected")
            configure(("centre", centre.url, "b/# out 2"), ("other", other.url, "# out 2"))
            edge.hang_up()
            edge.heard(lambda event: event["event"] == "bridge.connected" and event["name"] == "other")
            edge.event("bridge.connected", number=3)
            url = f"mqtt://127.0.0.1:{edge.address.port}"
            publish(url, [("a/1", "x"), ("b/1", "y")])
            waited(lambda: stored(centre) and len(stored(other)) >= 2)
            assert stored(centre) == [("b/1", "y")] and stored(other) == [("a/1", "x"), ("b/1", "y")]
            assert bridge_sessions(edge.data) == 2
            configure(("centre", centre.url, "b/# out 2"))
            edge.hang_up()
            waited(lambda: bridge_sessions(edge.data) == 1)
            waited(lambda: bridge_sessions(other.data) == 0 and bridge_sessions(centre.data) == 1)
        finally:
            edge.end()


def test_an_edge_with_a_new_disk_goes_on_with_the_session_at_the_other_broker(tmp_path: Path) -> None:
    """Its own session is a new one, which gives the ids again that the other broker may know from before."""
    with rumq.broker() as centre:
        own = bridge(centre.url, "# out 2", client_id="edge-7")
        for part in range(2):
            with rumq.broker(data=tmp_path / f"disk-{part}", bridge=[own]) as edge:
                waited(lambda edge=edge: edge.events("bridge.connected"))
                publish(edge.url, [("plant/1", f"{part} {n}") for n in range(50)])
                waited(lambda part=part: len(stored(centre)) >= part * 50 + 50)
                assert len(edge.events("bridge.doubtful")) == part
        assert stored(centre) == [("plant/1", f"{part} {n}") for part in range(2) for n in range(50)]


RULES = """
[[rule]]
users = ["robot"]
allow = ["subscribe"]
topics = ["a/#"]

[[rule]]
allow = ["publish"]
topics = ["#"]
"""


def test_it_logs_in_over_tls_and_as_a_user_here(tmp_path: Path, authorities: Authorities) -> None:
    """A wrong password is tried again until the file has the right one; rules hold for the user that it is here."""
    users, password, rules = tmp_path / "users", tmp_path / "password", tmp_path / "rules.toml"
    users.write_text("edge:" + hashes.pbkdf2_sha512(b"secret", bytes(16)) + "\n")
    users.chmod(0o600)
    password.write_text("wrong\n")
    rules.write_text(RULES)
    tls = {"tls_certificate": authorities.path("server"), "tls_key": authorities.path("server", "key")}
    with rumq.broker(listener=tls, auth={"password_file": str(users)}) as centre:
        own = {
            "user": "edge", "password_file": str(password), "tls_authority": authorities.path("ca"),
            "local_user": "robot",
        }  # fmt: skip
        bridges = [
            bridge(f"mqtts://localhost:{centre.port}", "a/# out 2", **own),
            bridge(f"mqtts://localhost:{centre.port}", "b/# out 2", name="denied", **own),
        ]
        with rumq.broker(bridge=bridges, auth={"rules_file": str(rules)}) as edge:
            lost = waited(lambda: [each for each in edge.events("bridge.lost") if each["name"] == "centre"])
            assert "0x86" in lost[0]["why"] or "0x87" in lost[0]["why"]
            password.write_text("secret\n")
            waited(lambda: edge.events("bridge.connected"))
            publish(edge.url, [("a/1", "x"), ("b/1", "y")])
            waited(lambda: stored(centre))
            denied = [each["why"] for each in edge.events("bridge.lost") if each["name"] == "denied"]
            assert "the subscription to b/#" in denied[0]
            assert stored(centre) == [("a/1", "x")]


@contextlib.contextmanager
def mosquitto(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Debian's broker: its url, and what restarts it, with its sessions."""
    if MOSQUITTO is None:
        pytest.skip("mosquitto is not installed here (Debian's package mosquitto)")
    port = free_port()
    (folder / "mosquitto.conf").write_text(CONF.format(port=port, folder=folder))
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        command = [MOSQUITTO, "-c", str(folder / "mosquitto.conf")]
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for _ in tries(SECONDS_MAX):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
        raise AssertionError("mosquitto does not listen")

    def stop() -> None:
        running[-1].terminate()
        running[-1].wait(SECONDS_MAX)

    def restart() -> None:
        stop()
        start()

    start()
    try:
        yield f"mqtt://127.0.0.1:{port}", restart
    finally:
        stop()


@pytest.mark.parametrize("version", ["auto", "3.1.1"])
def test_mosquitto_at_the_other_end_both_ways(version: str, tmp_path: Path) -> None:
    """It is stopped meanwhile, and keeps its sessions: nothing is lost, and none comes back.

    mosquitto 2.0.11 sends some messages again behind a restart that were complete, also to any other client."""
    with mosquitto(tmp_path) as (url, restart):
        topics = ("up/# out 2", "down/# in 2", "plant/# both 2")
        with rumq.broker(bridge=[bridge(url, *topics, mqtt_version=version)]) as edge:
            waited(lambda: edge.events("bridge.connected"))
            heard = Heard(url)
            try:
                for part in range(3):
                    publish(edge.url, [("up/1", f"{n}") for n in range(part * 50, part * 50 + 50)])
                    publish(url, [("down/1", f"{n}") for n in range(part * 50, part * 50 + 50)])
                    publish(edge.url, [("plant/here", f"{part}")])
                    publish(url, [("plant/there", f"{part}")])
                    if part < 2:
                        waited(lambda: heard.count("up/1") >= part * 50 + 50)  # noqa: B023
                        restart()
                wanted = [f"{n}" for n in range(150)]
                waited(lambda: len(stored(edge, "down/1")) >= 150 and heard.count("up/1") >= 150)
                waited(lambda: len(stored(edge, "plant/there")) >= 3 and heard.count("plant/here") >= 3)
                assert list(dict.fromkeys(payload for _, payload in stored(edge, "down/1"))) == wanted
            finally:
                found = by_topic(heard.end())
            assert list(dict.fromkeys(found["up/1"])) == wanted
            assert len(set(stored(edge, "plant/#"))) == 6
            assert len(set(found["plant/here"])) == len(set(found["plant/there"])) == 3


class Heard:
    """What a broker delivers to a subscriber that stays, each once."""

    def __init__(self, url: str) -> None:
        self.messages: list[tuple[str, str]] = []
        self._subscribed, self._ending = threading.Event(), trio.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self._thread = threading.Thread(target=trio.run, args=(self._run, url))
        self._thread.start()
        assert self._subscribed.wait(SECONDS_MAX)

    async def _run(self, url: str) -> None:
        self._token = trio.lowlevel.current_trio_token()
        options = {"client_id": "heard", "session_expiry": 3600, "clean_start": False, "reconnect": True}
        async with connect(url, **options) as client, trio.open_nursery() as nursery:
            await client.subscribe("#", qos=2)
            self._subscribed.set()

            async def read() -> None:
                async for message in client.messages():
                    self.messages.append((message.topic, message.payload.decode()))

            nursery.start_soon(read)
            await self._ending.wait()
            nursery.cancel_scope.cancel()

    def count(self, topic: str) -> int:
        return sum(each == topic for each, _ in self.messages)

    def end(self) -> list[tuple[str, str]]:
        assert self._token is not None
        self._token.run_sync_soon(self._ending.set)
        self._thread.join()
        return self.messages
