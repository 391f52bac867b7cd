"""Clients that nobody here wrote, over TLS and WebSocket: Paho, mosquitto's, MQTT.js."""

import json
import os
import queue
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from rumq.net.listening.transports import Transports
from rumq.net.tls.tls import TlsServer
from rumq.net.websocket.websocket_handshake import WebSocketOptions
from tests.interop.conftest import installed
from tests.interop.test_mqttjs import NUMBERS
from tests.net.authorities import Authorities
from tests.net.served import Served

INTEROP = Path(__file__).parents[1] / "interop"
BIG = bytes(range(256)) * 2048  # half a MiB: many records, several frames
__all__ = ["installed"]
node = pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None, reason="Node.js and npm are not installed"
)
mosquitto = pytest.mark.skipif(
    shutil.which("mosquitto_sub") is None, reason="Debian's mosquitto-clients is not installed"
)


@pytest.fixture(scope="module")
def served(authorities: Authorities) -> Iterator[Served]:
    websocket = WebSocketOptions()
    made = Served(
        mqtts=Transports(tls=TlsServer(authorities.mutual(crlfile=authorities.path("crl")))),
        ws=Transports(websocket=websocket),
        wss=Transports(tls=TlsServer(authorities.options(alpn=("http/1.1",))), websocket=websocket),
    )
    yield made
    made.end()


class Paho:
    def __init__(self, served: Served, kind: str, authorities: Authorities, certificate: str = "client") -> None:
        self.got: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self.heard: queue.Queue[object] = queue.Queue()
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            protocol=MQTTProtocolVersion(mqtt.MQTTv5),
            transport="websockets" if kind.startswith("ws") else "tcp",
            reconnect_on_failure=False,
        )
        if kind.startswith("ws"):
            self.client.ws_set_options(path="/mqtt")
        if kind != "ws":
            context = ssl.create_default_context(cafile=authorities.path("ca"))
            if kind == "mqtts":
                context.load_cert_chain(authorities.path(certificate), authorities.path(certificate, "key"))
            self.client.tls_set_context(context)
        self.client.on_message = lambda _c, _u, message: self.got.put((message.topic, message.payload))
        self.client.on_connect = lambda _c, _u, _f, reason, _p: self.heard.put(reason)
        self.client.on_subscribe = lambda _c, _u, _m, reasons, _p: self.heard.put(reasons)
        self.client.connect("localhost" if kind != "ws" else "127.0.0.1", served.ports[kind])
        self.client.loop_start()
        self.heard.get(timeout=30)

    def end(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.parametrize("kind", ["mqtts", "ws", "wss"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_paho(served: Served, authorities: Authorities, kind: str, qos: int) -> None:
    reader, writer = Paho(served, kind, authorities), Paho(served, kind, authorities)
    topic = f"paho/{kind}/{qos}"
    reader.client.subscribe(topic, qos)
    reader.heard.get(timeout=30)
    payloads = [b"%d" % n for n in range(100)] + [BIG] + [b"last"]
    for payload in payloads:
        writer.client.publish(topic, payload, qos)
    assert [reader.got.get(timeout=30) for _ in payloads] == [(topic, payload) for payload in payloads]
    for each in (reader, writer):
        each.end()


@mosquitto
@pytest.mark.mosquitto
@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
def test_mosquitto_with_a_certificate(served: Served, authorities: Authorities, version: str) -> None:
    topic = f"mosquitto/{version}"
    done = mosquitto_pub(served, authorities, "client", "-V", version, "-t", topic, "-m", "kept", "-q", "1", "-r")
    assert done.returncode == 0, done.stderr
    got = subprocess.run(
        [
            *command("mosquitto_sub", served, authorities, "client"),
            "-V",
            version,
            "-t",
            topic,
            "-C",
            "1",
            "-W",
            "30",
        ],
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert got.stdout == b"kept\n"


@mosquitto
@pytest.mark.mosquitto
@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        (None, "no client certificate"),
        ("expired", "expired on 2020-02-03"),
        ("revoked", "is revoked"),
        ("stranger", "comes from an unknown authority"),
    ],
)
def test_mosquitto_without_a_good_certificate(
    served: Served, authorities: Authorities, certificate: str | None, words: str
) -> None:
    before = len(served.named("connection.refused"))
    done = mosquitto_pub(served, authorities, certificate, "-V", "mqttv5", "-t", "a", "-m", "b", "-q", "1")
    assert done.returncode != 0
    told = served.await_more("connection.refused", before)
    assert len(told) == 1 and words in told[0]["why"]


def command(name: str, served: Served, authorities: Authorities, certificate: str | None) -> list[str]:
    line = [name, "-h", "localhost", "-p", str(served.ports["mqtts"]), "--cafile", authorities.path("ca")]
    if certificate is not None:
        line += ["--cert", authorities.path(certificate), "--key", authorities.path(certificate, "key")]
    return line


def mosquitto_pub(
    served: Served, authorities: Authorities, certificate: str | None, *more: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*command("mosquitto_pub", served, authorities, certificate), *more],
        capture_output=True,
        timeout=60,
        check=False,
    )


@node
@pytest.mark.node
@pytest.mark.parametrize(("protocol", "version"), [("ws", "4"), ("ws", "5"), ("wss", "5")])
def test_mqtt_js(installed: None, served: Served, authorities: Authorities, protocol: str, version: str) -> None:
    """The whole story that it is told over TCP in tests/interop."""
    host = "localhost" if protocol == "wss" else "127.0.0.1"
    line = [
        "node",
        str(INTEROP / "story.mjs"),
        host,
        str(served.ports[protocol]),
        f"js/{protocol}/{version}",
        version,
    ]
    done = subprocess.run(
        [*line, "replay", protocol],
        env={**os.environ, "NODE_EXTRA_CA_CERTS": authorities.path("ca")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    assert seen["qos"] == {"0": NUMBERS, "1": NUMBERS, "2": NUMBERS}
    assert (seen["away"], seen["will"], seen["retained"]) == (NUMBERS[:10], ["gone"], [["on", True]])
    assert seen["replay"] == [*NUMBERS[:10], "live"]
