"""MQTT over WebSocket on the gateway's port: real clients, roles and rules, sessions, reload, bounds, bad input."""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
import trio
import trio.testing
from paho.mqtt.enums import CallbackAPIVersion

from rumq.client import Client, Will
from rumq.client.connector import connect_over
from rumq.client.transport.websocket import open_websocket
from rumq.errors import ClientError, Refused
from rumq.gateway.access.admission import OF_A_NETWORK_MAX, RequestAdmission
from rumq.gateway.access.host_names import HostNames
from rumq.gateway.access.tokens import Token, hash_of
from rumq.gateway.relay.login import LoginRefused
from rumq.gateway.relay.relays import OF_A_NETWORK_MAX as SILENT_MAX
from rumq.gateway.relay.relays import RelayLimits, Relays
from rumq.gateway.relay.websocket import is_same_host
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.reasons import Reason
from rumq.settings.table import gateway as config
from tests.cli.conftest import rumqd
from tests.gateway.conftest import RULES, Gateway, started
from tests.interop.conftest import installed

INTEROP = Path(__file__).parents[1] / "interop"
__all__ = ["installed"]
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    path: Path = tmp_path_factory.mktemp("relay")
    (path / "rules.toml").write_text(RULES.replace('"replay"', '"replay", "will"'))
    made = started(
        path, f"auth.rules_file={path}/rules.toml", "auth.guess_seconds_max=0", "gateway.request_seconds_max=2",
    )  # fmt: skip
    yield made
    made.broker.end()


@asynccontextmanager
async def connected(gateway: Gateway, token: str, client_id: str = "", **options: Any) -> Any:
    async def opened() -> trio.abc.Stream:
        stream = await trio.open_tcp_stream("127.0.0.1", gateway.port)
        return await open_websocket(stream, f"127.0.0.1:{gateway.port}", "/mqtt")

    secret = gateway.secrets.get(token, token)
    async with connect_over(opened, client_id=client_id, username="x", password=secret, **options) as client:
        yield client


def run(body: Any) -> Any:
    async def bounded() -> Any:
        with trio.fail_after(60):
            return await body()

    try:
        return trio.run(bounded)
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise


async def first(client: Client) -> Any:
    return (await client.receive_batch())[0]


@pytest.mark.parametrize("version", [4, 5])
def test_a_client_publishes_and_receives_as_the_tokens_user(gateway: Gateway, version: int) -> None:
    async def body() -> None:
        async with connected(gateway, "anna", f"desk-{version}", version=version) as client:
            await client.subscribe("plant/#", qos=1)
            for qos in (0, 1, 2):
                await client.publish("plant/7", b"21.5" * 1000, qos=qos)
                message = await first(client)
                assert (message.topic, message.payload) == ("plant/7", b"21.5" * 1000)

    run(body)
    seen = gateway.get("clients?client=desk-*&user=anna")["clients"]
    assert all(row["user"] == "anna" for row in seen)


def test_the_broker_knows_the_address_of_the_client(gateway: Gateway) -> None:
    async def body() -> None:
        async with connected(gateway, "anna", "from-here"):
            (row,) = await trio.to_thread.run_sync(lambda: gateway.get("clients?client=from-here")["clients"])
            assert row["address"].startswith("127.0.0.1:") and row["user"] == "anna"
            figures = await trio.to_thread.run_sync(partial(gateway.ask, "GET", "/metrics"))
            assert float(figures.body.split(b"\nrumq_gateway_mqtt_clients ")[1].split()[0]) >= 1

    run(body)


def test_rules_of_the_user_apply(gateway: Gateway) -> None:
    async def body() -> None:
        async with connected(gateway, "anna") as client:
            with pytest.raises(Refused):
                await client.subscribe("other/#")
            assert (await client.publish_each([outgoing("other/t"), outgoing("plant/t")]))[0][0] == 0x87

    run(body)


def outgoing(topic: str) -> Any:
    from rumq.client.session.messages import Outgoing
    from rumq.mqtt.properties import Properties

    return Outgoing(topic, b"x", 1, False, Properties())


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("secret", ["rumq_wrong", "", "x" * 5_000])
def test_a_wrong_token_is_refused(gateway: Gateway, secret: str, version: int) -> None:
    async def body() -> None:
        async with connected(gateway, secret, version=version):
            raise AssertionError

    with pytest.raises(Refused) as caught:
        run(body)
    assert caught.value.reason_code == Reason.NOT_AUTHORIZED


def test_wrong_tokens_of_an_address_are_refused_later_each_time_and_a_right_one_at_once() -> None:
    admission = RequestAdmission({hash_of("rumq_right"): Token("t", frozenset({"read"}))}, 8.0)
    relays = Relays(
        "",
        RelayLimits(9, 1 << 17, 1 << 20),
        admission,
        HostNames(config.Gateway(), is_loopback=True),
        lambda name, **fields: None,
        trio.current_time,
    )

    async def seconds(secret: str, host: str = "10.0.0.1") -> float:
        began = trio.current_time()
        connect = p.Connect("c", 5, username="u", password=secret.encode())
        with suppress(LoginRefused):
            await relays._admitted(connect, host)
        return trio.current_time() - began

    async def body() -> None:
        assert [await seconds("wrong") for _ in range(4)] == pytest.approx([0.25, 0.5, 1.0, 2.0], rel=0.05)
        assert await seconds("rumq_right") == 0.0
        assert await seconds("wrong", "10.0.0.2") == 0.25
        admission.waiting["10.0.0.1"] = OF_A_NETWORK_MAX
        assert await seconds("wrong") == 0.0, "so many wait already"

    trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))


def test_roles_are_enforced(gateway: Gateway) -> None:
    async def body() -> None:
        async with connected(gateway, "reader") as reader, connected(gateway, "sender") as sender:
            await reader.subscribe("open/#", qos=1)
            with pytest.raises(Refused):
                await sender.subscribe("open/#")
            refused = await reader.publish_each([outgoing("open/t")])
            assert refused[0][0] == Reason.NOT_AUTHORIZED
            await sender.publish("open/t", b"1", qos=2)
            assert (await first(reader)).payload == b"1"
        with pytest.raises(Refused):
            async with connected(gateway, "reader", will=Will("open/t", b"gone")):
                pass
        async with connected(gateway, "sender", will=Will("open/t", b"gone")):
            pass

    run(body)
    told = gateway.broker.named("relay.refused")
    assert {(each["token"], each["action"]) for each in told} >= {
        ("sender", "subscribe"),
        ("reader", "publish"),
    }


def test_a_session_with_subscriptions_gives_nothing_to_a_token_that_may_not_read(gateway: Gateway) -> None:
    """Both tokens are nobody in particular, so they have the same session."""

    async def body() -> None:
        lasting: dict[str, Any] = {"clean_start": False, "session_expiry": 1000}
        async with connected(gateway, "reader", "shared", **lasting) as reader:
            await reader.subscribe("open/secret", qos=1)
        async with connected(gateway, "sender") as sender:
            await sender.publish("open/secret", b"for readers", qos=1)
        with pytest.raises(ClientError):
            async with connected(gateway, "sender", "shared", **lasting) as thief:
                raise AssertionError(await thief.receive_batch())
        async with connected(gateway, "reader", "shared", **lasting) as reader:
            assert (await first(reader)).payload == b"for readers"

    run(body)


def test_a_client_id_of_another_user_is_another_session(gateway: Gateway) -> None:
    async def body() -> None:
        async with connected(gateway, "anna", "same") as anna:
            await anna.subscribe("plant/#", qos=1)
            async with connected(gateway, "ops", "same"):
                await anna.publish("plant/1", b"still here", qos=1)
                assert (await first(anna)).payload == b"still here"

    run(body)


def test_a_will_is_published_when_the_websocket_breaks(gateway: Gateway) -> None:
    async def body() -> None:
        async with connected(gateway, "anna") as watcher:
            await watcher.subscribe("plant/wills", qos=1)
            sock, _ = await trio.to_thread.run_sync(partial(logged_in, gateway, "anna", p.Will("plant/wills", b"gone")))
            sock.close()
            assert (await first(watcher)).payload == b"gone"

    run(body)


def test_a_removed_token_ends_its_connections_and_others_stay(tmp_path: Path) -> None:
    gateway = started(tmp_path)
    try:
        sock, _ = logged_in(gateway, "reader")
        stays, _ = logged_in(gateway, "ops")
        removed = rumqd("token", "remove", "reader", "--data", str(gateway.broker.data))
        assert removed.status == 0
        gateway.broker.process.send_signal(signal.SIGHUP)
        gateway.broker.event("gateway.reloaded")
        assert b"the token was removed" in until_end(sock)
        stays.sendall(client_frame(encode(p.Pingreq(), 5)))
        assert stays.recv(100)[2:] == encode(p.Pingresp(), 5)
        stays.close()
    finally:
        gateway.broker.end()


def opened(gateway: Gateway, path: str = "/mqtt", *lines: str) -> socket.socket:
    """With the request for a WebSocket sent."""
    sock = socket.create_connection(("127.0.0.1", gateway.port), timeout=30)
    usual = ["Host: localhost", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {KEY}"]
    usual += ["Sec-WebSocket-Version: 13", *(lines or ("Sec-WebSocket-Protocol: mqtt",))]
    sock.sendall("\r\n".join([f"GET {path} HTTP/1.1", *usual, "", ""]).encode())
    return sock


def head_of(sock: socket.socket) -> bytes:
    got = b""
    while b"\r\n\r\n" not in got and (more := sock.recv(1)):
        got += more
    return got


def client_frame(data: bytes, opcode: int = 2) -> bytes:
    """Masked with zeros."""
    size = len(data)
    if size < 126:
        return bytes([0x80 | opcode, 0x80 | size]) + bytes(4) + data
    return bytes([0x80 | opcode, 0xFE]) + size.to_bytes(2, "big") + bytes(4) + data


def until_end(sock: socket.socket) -> bytes:
    got = b""
    try:
        while more := sock.recv(4096):
            got += more
    except ConnectionResetError:
        pass
    sock.close()
    return got


def connect_of(gateway: Gateway, token: str, will: p.Will | None = None) -> bytes:
    secret = gateway.secrets[token].encode()
    return encode(p.Connect("", 5, username="x", password=secret, will=will, keep_alive=0), 5)


def logged_in(gateway: Gateway, token: str, will: p.Will | None = None) -> tuple[socket.socket, p.Packet]:
    sock = opened(gateway)
    assert head_of(sock).startswith(b"HTTP/1.1 101")
    sock.sendall(client_frame(connect_of(gateway, token, will)))
    assert sock.recv(2)[0] == 0x82
    reader = FrameReader()
    while not (frames := list(reader.frames())):
        reader.receive(sock.recv(4096))
    from rumq.mqtt.decode import decode

    return sock, decode(frames[0].first_byte, frames[0].body, 5)


def test_connect_byte_by_byte_in_frames_of_a_byte_and_with_packets_behind_it(gateway: Gateway) -> None:
    data = connect_of(gateway, "ops") + encode(p.Pingreq(), 5)
    for pieces in ([data[at : at + 1] for at in range(len(data))], [data]):
        sock = opened(gateway)
        with closing(sock):
            head = head_of(sock)
            assert b"sec-websocket-protocol: mqtt" in head.lower() and b"extensions" not in head.lower()
            for piece in pieces:
                sock.sendall(client_frame(piece))
            got = b""
            while encode(p.Pingresp(), 5) not in got:
                got += sock.recv(4096)
            assert got[2] == 0x20, "CONNACK is the first"


def test_the_request_arrives_byte_by_byte_and_after_another_request(gateway: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = b""
        while not got.endswith(b"}"):
            got += sock.recv(4096)
        request = (
            f"GET /mqtt?a=b HTTP/1.1\r\nHost: localhost\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
        ).encode()
        for at in range(len(request)):
            sock.sendall(request[at : at + 1])
        assert head_of(sock).startswith(b"HTTP/1.1 101")


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["Sec-WebSocket-Protocol: chat"], b"400"),
        (["X: y"], b"400"),
        (["Sec-WebSocket-Protocol: mqtt", "Origin: https://evil.example"], b"403"),
        (["Sec-WebSocket-Protocol: mqtt", "Origin: null"], b"403"),
        (["Sec-WebSocket-Protocol: mqtt", "Origin: http://localhost"], b"101"),
        (["Sec-WebSocket-Protocol: chat, mqttv3.1"], b"101"),
        (["Sec-WebSocket-Protocol: mqtt", "Sec-WebSocket-Version: 8"], b"426"),
    ],
)
def test_the_request_is_checked(gateway: Gateway, lines: list[str], status: bytes) -> None:
    with closing(opened(gateway, "/mqtt", *lines)) as sock:
        assert head_of(sock).split(b" ")[1] == status


def test_other_paths_are_no_websockets_and_without_an_upgrade_nothing_is_there(gateway: Gateway) -> None:
    with closing(opened(gateway, "/mqttx")) as sock:
        assert head_of(sock).split(b" ")[1] in (b"403", b"404")
    assert gateway.ask("GET", "/mqtt").status == 404


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://a:8080", "a:8080", True), ("https://a", "a", True), ("https://A.example", "a.example", True),
        ("https://a:443", "a", True), ("http://a", "a:8080", False), ("http://b:8080", "a:8080", False),
        ("http://[::1]:80", "[::1]", True), ("null", "a", False), ("", "", False), ("http://a:x", "a", False),
        ("https://a:8080", "a:9090", False), ("http://a.evil", "a", False),
    ],
)  # fmt: skip
def test_a_page_may_connect_to_the_host_that_it_came_from(origin: str, host: str, same: bool) -> None:
    assert is_same_host(origin, host) == same


@pytest.mark.parametrize(
    "data",
    [
        client_frame(b"hello", 1),  # text
        client_frame(b"GET / HTTP/1.1\r\n\r\n"),
        client_frame(b"\x10\xff\xff\xff\x7f"),  # CONNECT of 256 MiB
        b"\x82\x7f" + bytes(8),  # not masked
        b"\xff" * 100, b"\x88\x80" + bytes(4),  # CLOSE
        bytes([0x82, 0xFF]) + (1 << 62).to_bytes(8, "big") + bytes(4) + b"\x30" * 70_000,  # a huge frame
        bytes([0xC2, 0x85]) + bytes(4) + b"hello",  # compressed
    ],
    ids=lambda data: data[:8].hex(),
)  # fmt: skip
def test_bad_bytes_end_the_connection_and_nothing_else(gateway: Gateway, data: bytes) -> None:
    sock = opened(gateway)
    head_of(sock)
    try:
        sock.sendall(data)
    except OSError:
        pass
    until_end(sock)
    assert gateway.ask("GET", "/healthz").status == 200
    assert not gateway.broker.named("gateway.failed", "gateway.died")


def test_a_packet_beyond_the_limit_ends_a_client_of_one_role(gateway: Gateway) -> None:
    sock, _ = logged_in(gateway, "sender")
    sock.sendall(client_frame(b"\x30\xff\xff\xff\x7f"))
    assert bytes([0xE0]) in until_end(sock), "DISCONNECT"


def test_of_connections_that_do_not_log_in_the_oldest_goes_and_a_newcomer_is_heard(gateway: Gateway) -> None:
    silent = []
    for _ in range(SILENT_MAX + 1):
        silent.append(opened(gateway))
        assert head_of(silent[-1]).startswith(b"HTTP/1.1 101")
    assert until_end(silent[0]) == b""
    logged_in(gateway, "ops")[0].close()
    assert until_end(silent[1]) == b"", "it went for the one that logged in"
    for sock in silent[2:]:
        sock.sendall(client_frame(b"\x03\xe8", 8))
        until_end(sock)


def test_logged_in_clients_are_bounded(tmp_path: Path) -> None:
    gateway = started(tmp_path, "gateway.mqtt_connections_max=2")
    try:
        both = [logged_in(gateway, "ops")[0] for _ in range(2)]
        with closing(opened(gateway)) as sock:
            assert head_of(sock).startswith(b"HTTP/1.1 503")
        for each in both:
            each.sendall(client_frame(b"\x03\xe8", 8))
            until_end(each)
        while True:  # its place is free once the broker has closed
            with closing(opened(gateway)) as sock:
                if head_of(sock).startswith(b"HTTP/1.1 101"):
                    break
    finally:
        gateway.broker.end()


def test_a_client_that_never_reads_is_given_up_and_others_are_served(gateway: Gateway) -> None:
    sock, _ = logged_in(gateway, "ops")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    ping = client_frame(encode(p.Pingreq(), 5))
    sock.settimeout(30)
    with pytest.raises(OSError):  # noqa: PT012 - which of them sees it depends on what is buffered
        while True:
            sock.sendall(ping * 1000)
    sock.close()
    logged_in(gateway, "ops")[0].close()


@pytest.mark.parametrize("version", [paho.MQTTv31, paho.MQTTv311, paho.MQTTv5])
def test_paho_over_websocket(gateway: Gateway, version: int) -> None:
    got: list[bytes] = []
    subscribed, received = threading.Event(), threading.Event()
    client = paho.Client(CallbackAPIVersion.VERSION2, f"paho{version}", transport="websockets", protocol=version)
    client.username_pw_set("token", gateway.secrets["anna"])
    client.ws_set_options(path="/mqtt")
    client.on_connect = lambda *_: client.subscribe("plant/paho", 1)
    client.on_subscribe = lambda *_: subscribed.set()

    def took(_client: Any, _data: Any, message: Any) -> None:
        got.append(message.payload)
        received.set()

    client.on_message = took
    client.connect("127.0.0.1", gateway.port)
    client.loop_start()
    try:
        assert subscribed.wait(30)
        client.publish("plant/paho", b"from paho", 2).wait_for_publish(30)
        assert received.wait(30) and got == [b"from paho"]
    finally:
        client.disconnect()
        client.loop_stop()


@pytest.mark.node
def test_mqtt_js_over_websocket(installed: None, gateway: Gateway, tmp_path: Path) -> None:
    script = f"""
const mqtt = require('mqtt')
const one = (version, token) => new Promise((resolve, reject) => {{
  const client = mqtt.connect('ws://127.0.0.1:{gateway.port}/mqtt',
    {{ protocolVersion: version, username: 'token', password: token, reconnectPeriod: 0, clean: true }})
  client.on('error', error => {{ client.end(true); resolve('refused ' + error.code) }})
  client.on('message', (topic, payload) => client.end(false, {{}}, () => resolve(topic + ' ' + payload)))
  client.on('connect', () => client.subscribe('plant/js', {{ qos: 1 }}, error =>
    error ? reject(error) : client.publish('plant/js', 'from MQTT.js', {{ qos: 2 }})))
}})
;(async () => {{
  const said = []
  for (const version of [4, 5]) for (const token of ['{gateway.secrets["anna"]}', 'rumq_wrong'])
    said.push(await one(version, token))
  console.log(JSON.stringify(said))
}})()
"""
    path = tmp_path / "client.cjs"
    path.write_text(script)
    done = subprocess.run(
        ["node", str(path)], env={**os.environ, "NODE_PATH": str(INTEROP / "node_modules")}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == ('["plant/js from MQTT.js","refused 5","plant/js from MQTT.js","refused 135"]'), (
        done.stderr
    )
