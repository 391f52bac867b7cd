"""Clients that we did not write, through a listener with a mount point: plain, over TLS and in another shard."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Address, Peer

COUNT = 300


@pytest.fixture(scope="module", params=[1, 2])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rumqd]:
    folder: Path = tmp_path_factory.mktemp("mount")
    config = folder / "config.toml"
    config.write_text(
        f'shards.count = {request.param}\n[[listener]]\nhost = "127.0.0.1"\nport = 0\n'
        '[[listener]]\nhost = "127.0.0.1"\nport = 0\nmount_point = "site-7/"\n'
    )
    broker = Rumqd(folder / "data", "--config", str(config))
    broker.start()
    yield broker
    broker.end()


def addresses(broker: Rumqd) -> tuple[Address, Address]:
    broker.event("listener.bound", number=2)
    plain, mounted = (("127.0.0.1", bound["port"]) for bound in broker.named("listener.bound"))
    return plain, mounted


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_topics_have_the_mount_point_outside_and_not_inside(broker: Rumqd, qos: int) -> None:
    plain, mounted = addresses(broker)
    with Peer(plain) as outside, Peer(mounted) as inside, Peer(mounted, version=4) as other:
        outside.connect(f"outside-{qos}")
        inside.connect(f"inside-{qos}")
        other.connect(f"other-{qos}")
        for peer in (outside, inside, other):
            peer.subscribe(("#", qos))
        payloads = [b"%d" % number for number in range(COUNT)]
        inside.publish_all(f"pump/{qos}", payloads, qos)
        for peer, topic in ((outside, f"site-7/pump/{qos}"), (inside, f"pump/{qos}"), (other, f"pump/{qos}")):
            found = peer.messages(COUNT)
            assert {packet.topic for packet in found} == {topic}
            assert [packet.payload for packet in found] == payloads
        outside.publish("elsewhere", b"not for them", 1)
        outside.publish(f"site-7/valve/{qos}", b"for them", 1)
        assert [(m.topic, m.payload) for m in inside.messages(1)] == [(f"valve/{qos}", b"for them")]


def test_what_is_retained_replayed_and_willed(broker: Rumqd) -> None:
    plain, mounted = addresses(broker)
    with Peer(plain) as outside, Peer(mounted) as inside, Peer(mounted) as late:
        outside.connect("outside-r")
        outside.subscribe("site-7/gone")
        inside.connect("inside-r", will=wire.Will("gone", b"away"))
        inside.publish("kept", b"retained", 1, retain=True)
        late.connect("late")
        late.subscribe("kept")
        assert [(m.topic, m.payload) for m in late.messages(1)] == [("kept", b"retained")]
        late.subscribe("$log/earliest/kept")
        assert [(m.topic, m.payload) for m in late.messages(1)] == [("kept", b"retained")]
        inside.reset()
        assert [m.topic for m in outside.messages(1)] == ["site-7/gone"]


def test_mosquitto_s_clients_come_through(broker: Rumqd) -> None:
    _, mounted = addresses(broker)
    there = ["-h", mounted[0], "-p", str(mounted[1]), "-t", "by/mosquitto"]
    subprocess.run(
        ["mosquitto_pub", *there, "-r", "-q", "1", "-s"],
        input="x" * 200_000,
        text=True,
        check=True,
        timeout=60,
    )
    found = subprocess.run(
        ["mosquitto_sub", *there, "-C", "1", "-F", "%t %l"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert found.stdout.split() == ["by/mosquitto", "200000"]
