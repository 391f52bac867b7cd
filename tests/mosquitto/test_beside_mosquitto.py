"""rumqd and mosquitto from one mosquitto.conf: the same bytes for the same clients."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bench.peers.peer import free_port
from tests.conformance import wire
from tests.conformance.peer import Peer
from tests.conformance.wire import Prop, Will
from tests.mosquitto.mosquitto_process import MOSQUITTO, running

CONF = """
user root
listener {port} 127.0.0.1
allow_anonymous {anonymous}
password_file {folder}/pw
acl_file {folder}/acl
max_packet_size 20000
max_keepalive 100
"""
ACL = "topic read public/#\nuser u\ntopic readwrite own/#\ntopic deny own/secret\npattern write by/%c/#\n"


@pytest.fixture(scope="module", params=["true", "false"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[str, int]]]:
    """The addresses of mosquitto and of rumqd."""
    if MOSQUITTO is None or shutil.which("mosquitto_passwd") is None:
        pytest.skip("mosquitto is not installed here (Debian's package mosquitto)")
    folder = tmp_path_factory.mktemp("mosquitto")
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(folder / "pw"), "u", "p"], check=True)
    (folder / "pw").chmod(0o644)
    (folder / "acl").write_text(ACL)
    ports = [free_port(), free_port()]
    for name, port in zip("mr", ports, strict=True):
        (folder / f"{name}.conf").write_text(CONF.format(port=port, folder=folder, anonymous=request.param))
    with (
        running([MOSQUITTO, "-c", str(folder / "m.conf")], ports[0]),
        # The port on the command line counts, whatever the file says.
        running(
            [
                sys.executable,
                "-m",
                "rumq",
                "run",
                "--mosquitto-conf",
                str(folder / "m.conf"),
                "--port",
                str(ports[1]),
            ],
            ports[1],
        ),
    ):
        yield [("127.0.0.1", port) for port in ports]


def said(address: tuple[str, int], *packets: bytes) -> bytes:
    """What a broker answers to these bytes, up to PINGRESP or its end."""
    with socket.create_connection(address, timeout=30) as sock:
        sock.sendall(b"".join(packets))
        heard = b""
        while not heard.endswith(b"\xd0\x00"):
            try:
                data = sock.recv(65_536)
            except ConnectionError:
                break
            if not data:
                break
            heard += data
    return heard


LOGGED_IN = {"username": "u", "password": b"p"}
CONNECTS: list[dict[str, object]] = [
    LOGGED_IN,
    {"username": "u", "password": b"x"},
    {"username": "v", "password": b"p"},
    {"username": "u"},
    {},
    LOGGED_IN | {"keep_alive": 200},
    LOGGED_IN | {"clean": False},
]


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("fields", CONNECTS, ids=str)
def test_connack(both: list[tuple[str, int]], version: int, fields: dict[str, object]) -> None:
    packets = (wire.connect("c", version, **fields), wire.PINGREQ)  # type: ignore[arg-type]
    theirs, ours = (said(address, *packets) for address in both)
    assert ours == theirs


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("topic", ["own/secret", "other", "by/c/x", "by/d/x", "public/x"])
def test_publishing_and_receiving(both: list[tuple[str, int]], version: int, qos: int, topic: str) -> None:
    """Subscribed to what it publishes, a client is answered, and gets nothing it may not have."""
    packets = (
        wire.connect("c", version, **LOGGED_IN),
        wire.subscribe(1, [("#", 0), (topic, 0)], (), version),
        wire.publish(topic, b"payload", qos, 7 if qos else 0, version=version),
        wire.PINGREQ,
    )
    theirs, ours = (sorted(said(address, *packets)) for address in both)
    assert ours == theirs


@pytest.mark.parametrize("version", [4, 5])
def test_a_will_that_is_not_allowed(both: list[tuple[str, int]], version: int) -> None:
    for address in both:
        watcher = Peer(address, version)
        assert watcher.connect("w", **LOGGED_IN).code == 0
        watcher.subscribe("own/#", "other")
        for topic in ("other", "own/secret", "own/will"):
            dying = Peer(address, version)
            assert dying.connect("d", will=Will(topic, b"x"), **LOGGED_IN).code == 0
            dying.close()
        assert [m.topic for m in watcher.messages(1)] == ["own/will"]
        watcher.expect_silence()


def test_an_assigned_client_id(both: list[tuple[str, int]]) -> None:
    for address in both:
        peer = Peer(address)
        found = dict(peer.connect("", **LOGGED_IN).properties)
        assert found[Prop.ASSIGNED_CLIENT_ID].startswith("auto-")
