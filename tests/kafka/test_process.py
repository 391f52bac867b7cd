"""Kafka's server as a process: beside a broker that is told to, and by hand. docs/guides/kafka.md"""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from commitlog import RealFiles
from rumq.errors import ConfigError
from rumq.gateway.broker.service_client import maybe_kafka
from rumq.kafka.figures_socket import figures_of
from rumq.kafka.protocol.errors import KafkaFault
from rumq.process.kafka import group_parts
from rumq.process.kafka.kafka_server import NICE
from rumq.process.kafka.parts import advertised_of, catalog_of, door_of, retention_of
from rumq.process.wiring.sidecars import check_sidecars
from rumq.settings.load import Flag, load_settings
from rumq.settings.table import Settings
from tests.cli.conftest import ENVIRONMENT, command
from tests.flight.served import HASHED
from tests.kafka.conftest import kafka_broker
from tests.kafka.published import publish_all
from tests.kafka.wire_client import WireClient

NICE_MAX = 19  # of Linux: what is started so stays so


def settings_of(**flags: str) -> Settings:
    return load_settings(flags=[Flag(f"kafka.{key}", value, "--set") for key, value in flags.items()]).settings


def secrets(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


class ByHand:
    """`rumqd kafka` on any free port."""

    def __init__(self, root: str, *flags: str) -> None:
        self.process = subprocess.Popen(
            command("kafka", "--data", root, "--host", "127.0.0.1", "--port", "-1", *flags),
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        self.port = int(self.event("listener.bound")["port"])

    def event(self, name: str) -> dict[str, Any]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            event: dict[str, Any] = json.loads(line)
            if event["event"] == name:
                return event
        raise AssertionError(f"it ended without {name}")


def login(port: int, user: str) -> int:
    client = WireClient(port)
    client.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
    found = client.ask("SaslAuthenticate", 1, {"auth_bytes": f"\0{user}\0secret".encode()})
    client.close()
    return int(found["error_code"])


def test_it_serves_until_it_is_stopped_and_reads_users_again(root: str, tmp_path: Path) -> None:
    path = secrets(tmp_path / "users", f"anna:{HASHED}\n")
    ready = ByHand(root, "--set", f"auth.password_file={path}")
    assert (login(ready.port, "anna"), login(ready.port, "ben")) == (0, 58)
    assert "ben" in ready.event("kafka.refused")["why"]
    secrets(tmp_path / "users", "nonsense\n")
    ready.process.send_signal(signal.SIGHUP)
    assert "line 1: expected user:hash" in ready.event("settings.refused")["why"]
    assert login(ready.port, "anna") == 0
    secrets(tmp_path / "users", f"ben:{HASHED}\n")
    ready.process.send_signal(signal.SIGHUP)
    ready.event("kafka.reloaded")
    assert (login(ready.port, "anna"), login(ready.port, "ben")) == (58, 0)
    ready.process.terminate()
    assert ready.process.wait(60) == 0


def test_a_broker_starts_it_again_when_it_dies_and_it_ends_with_the_broker(tmp_path: Path) -> None:
    with kafka_broker(tmp_path / "data", "--set", "gateway.port=-1") as broker:
        publish_all(broker.process.address, [("a", b"1", {}), ("a", b"2", {})])
        client = WireClient(broker.port)
        found = b""
        while b"\x021" not in found:
            found += client.fetch("main", 0, max_wait_ms=1000)["records"]
        figures = None
        while figures is None or not figures.fetches:
            figures = trio.run(maybe_kafka, str(tmp_path / "data"))
        assert (figures.connections, figures.refused_connections) == (1, 0) and figures.bytes
        pid = process_of(broker.process.process.pid)
        assert priority_of(pid) in (NICE, NICE_MAX)
        subprocess.run(["kill", "-9", str(pid)], check=True)
        assert broker.process.event("kafka.died")["start_seconds"] >= 0
        broker.reach(2)
        assert WireClient(broker.port).ask("Metadata", 1, {"topics": None})["topics"][0]["name"] == "main"
        broker.process.events.remove(broker.process.named("kafka.died")[0])


def process_of(broker: int) -> int:
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().split(b"\0")
            parent = int(each.with_name("stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"kafka" in words and parent == broker:
            return int(each.parent.name)
    raise AssertionError("there is none")


def priority_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[16])


def test_settings_that_cannot_be_are_refused(tmp_path: Path) -> None:
    for flags, words in (
        ({"advertised": "nowhere"}, "expected host:port"),
        ({"view": '[{ name = "main", filter = "a" }]'}, "a stream or another view has this name"),
        ({"view": '[{ name = "v", filter = "a/#/b" }]'}, "kafka.view.v.filter"),
        ({"view": '[{ name = "v", filter = "$share/g/a" }]'}, "a view has no shared subscriptions"),
        ({"view": '[{ name = "v", filter = "a", stream = "none" }]'}, "expected a stream: main"),
        ({"view": '[{ name = "v" }]'}, "filter is missing"),
        ({"view": '[{ name = "no name", filter = "a" }]'}, "expected text of letters"),
        ({"view": "7"}, r"expected \[\[kafka.view\]\] sections"),
    ):
        with pytest.raises(ConfigError, match=words):
            settings_of(**flags)
    with pytest.raises(ConfigError, match="tls_authority needs TLS"):
        check_sidecars(settings_of(port="9092", tls_authority=secrets(tmp_path / "ca", "x")))


def test_views_are_topics_beside_streams() -> None:
    settings = settings_of(view='[{ name = "plant", filter = "plant/#" }]', advertised="[::1]:9093")
    catalog = catalog_of(settings, b"log")
    assert {name: each.view_filter for name, each in catalog.topics.items()} == {"main": None, "plant": "plant/#"}
    assert advertised_of(settings) == ("::1", 9093) and advertised_of(Settings()) is None
    assert retention_of(settings, "main")["cleanup.policy"] == "delete"


@pytest.mark.parametrize(("held", "is_served"), [(0.0, True), (1.9, True), (2.1, False)])
def test_groups_are_served_once_a_killed_predecessor_has_gone(
    held: float, is_served: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock is the kernel's until its last thread has ended; who has it after two seconds is another server."""
    told: list[str] = []
    monkeypatch.setattr(group_parts, "tell", lambda event, **fields: told.append(event))
    settings = load_settings(flags=[Flag("data.dir", str(tmp_path), "--set")]).settings

    async def scene() -> None:
        lock = RealFiles().lock(str(tmp_path / group_parts.LOCK), "")

        async def end() -> None:
            await trio.sleep(held)
            RealFiles().close(lock)

        async with trio.open_nursery() as nursery:
            if held:
                nursery.start_soon(end)
            else:
                RealFiles().close(lock)
            found = await group_parts.groups_of(settings)
        assert (found.own is not None) == found.may_serve == is_served
        assert told == ([] if is_served else ["kafka.groups_refused"])

    trio.run(scene, clock=MockClock(autojump_threshold=0))


def test_figures_begin_at_nothing(tmp_path: Path) -> None:
    from rumq.kafka.connection import ConnectionBounds
    from rumq.kafka.server import KafkaServer

    door = door_of(load_settings(flags=[Flag("data.dir", str(tmp_path), "--set")]).settings)
    server = KafkaServer(door, ConnectionBounds(1, 1.0), 10, lambda: None)
    assert set(figures_of(server).__struct_fields__) and figures_of(server).connections == 0
    assert door.cluster_id.startswith("rumq-") and issubclass(KafkaFault, Exception)
    door.log.close()
