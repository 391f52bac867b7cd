"""`rumqd pub` and `rumqd sub` over TLS, mutual TLS and WebSocket, at a running broker: what comes through, and what is
said of every mistake that can be made on the way in."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from rumq.auth.credentials.hashes import pbkdf2_sha512
from rumq.client import Outgoing, Tls, connect
from tests.broker_process import Rumqd
from tests.cli.conftest import Ended, rumqd
from tests.net.authorities import Authorities

PLAIN, TLS, MUTUAL, SECURE_WEBSOCKET, WEBSOCKET, ELSEWHERE = range(6)


class Site:
    """One broker with a listener for each way in."""

    def __init__(self, folder: Path) -> None:
        self.files = Authorities(folder)
        self.files._write("elsewhere", self.files.ca.issue_cert("broker.example"))
        for path in folder.glob("*.key"):
            path.chmod(0o600)
        users = folder / "users"
        users.touch(0o600)
        users.write_text(f"alice:{pbkdf2_sha512(b'secret:/@', bytes(12))}\n")
        tls = f'tls_certificate = "{self.files.path("server")}"\ntls_key = "{self.files.path("server", "key")}"\n'
        mutual = f'tls_authority = "{self.files.path("ca")}"\ntls_client_certificate = "required"\n'
        websocket = 'protocol = "websocket"\nwebsocket_path = "/mqtt"\n'
        elsewhere = tls.replace("server.", "elsewhere.")
        users_too = f'password_file = "{users}"\n'
        config = folder / "config.toml"
        config.write_text(
            "".join(
                f'[[listener]]\nhost = "127.0.0.1"\nport = 0\n{more}'
                for more in ("", tls, tls + mutual, tls + websocket + users_too, websocket, elsewhere)
            )
        )
        self.broker = Rumqd(folder / "data", "--config", str(config))
        self.broker.start()
        self.ports = [event["port"] for event in self.broker.named("listener.bound")]

    def said(self, why: str) -> None:
        """The broker, too, has told its operator."""
        names = ("connection.refused", "client.refused")
        self.broker.heard(lambda event: event["event"] in names and why in event["why"])

    def pub(self, way: int, *flags: str, host: str = "127.0.0.1") -> Ended:
        return rumqd("pub", "t", "-m", "x", "-q", "1", "-h", host, "-p", str(self.ports[way]), *flags)

    def ca(self, name: str = "ca") -> tuple[str, str]:
        return "--cafile", self.files.path(name)

    def own(self, name: str = "client") -> tuple[str, str, str, str]:
        return "--cert", self.files.path(name), "--key", self.files.path(name, "key")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.broker.end()


def comes_through(site: Site, topic: str, flags: list[str], way: int) -> None:
    """What was published one way is replayed the same way."""
    assert rumqd("pub", topic, "-m", "21.5", "-q", "1", *flags) == (0, "", "")
    got = rumqd("sub", topic, "-v", "--from", "earliest", "-C", "1", "-W", "60", *flags)
    assert got == (0, f"{topic} 21.5\n", "")


def test_tls(site: Site) -> None:
    comes_through(site, "tls", ["-h", "127.0.0.1", "-p", str(site.ports[TLS]), *site.ca()], TLS)


def test_mutual_tls(site: Site) -> None:
    flags = ["-h", "localhost", "-p", str(site.ports[MUTUAL]), *site.ca(), *site.own()]
    comes_through(site, "mutual", flags, MUTUAL)
    site.broker.heard(lambda event: event["event"] == "client.connected" and event.get("user") == "pump-7")


def test_a_url_says_it_all(site: Site) -> None:
    done = rumqd("pub", "-L", f"mqtts://localhost:{site.ports[TLS]}/by/url", "-m", "x", "-q", "1", *site.ca())
    assert done == (0, "", "")
    got = rumqd(
        "sub",
        "-L",
        f"mqtts://localhost:{site.ports[TLS]}/by/url",
        *site.ca(),
        "--from",
        "earliest",
        "-C",
        "1",
    )
    assert got == (0, "x\n", "")


def test_the_python_client_speaks_mutual_tls(site: Site) -> None:
    tls = Tls(cafile=site.files.path("ca"), cert=site.files.path("client"), key=site.files.path("client", "key"))

    async def there_and_back(version: int) -> None:
        url = f"mqtts://localhost:{site.ports[MUTUAL]}"
        async with connect(url, tls=tls, version=version) as client:
            await client.subscribe("python", qos=1)
            sent = [Outgoing("python", b"%d" % n, qos=1) for n in range(2000)]
            await client.publish_batch(sent)
            got: list[bytes] = []
            while len(got) < len(sent):
                got += [message.payload for message in await client.receive_batch()]
            assert got == [message.payload for message in sent]

    for version in (5, 4):
        trio.run(there_and_back, version)


def test_websocket_over_tls_with_a_user(site: Site) -> None:
    url = f"wss://alice:secret%3A%2F%40@localhost:{site.ports[SECURE_WEBSOCKET]}/mqtt"
    comes_through(site, "wss", ["-L", url, *site.ca()], SECURE_WEBSOCKET)
    comes_through(site, "ws", ["-L", f"ws://127.0.0.1:{site.ports[WEBSOCKET]}"], WEBSOCKET)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_large_message_comes_through_every_way(site: Site, tmp_path: Path, version: str) -> None:
    payload = tmp_path / "payload"
    payload.write_bytes(bytes(range(256)) * 4000)
    user = ("-u", "alice", "-P", "secret:/@")
    ways: list[tuple[str, ...]] = [
        ("-L", f"mqtts://localhost:{site.ports[TLS]}"),
        ("-L", f"wss://localhost:{site.ports[SECURE_WEBSOCKET]}/mqtt", *user),
    ]
    for number, way in enumerate(ways):
        flags = (*way, *site.ca(), "-V", version)
        topic = f"large/{version}/{number}"
        assert rumqd("pub", topic, "-f", str(payload), "-q", "2", *flags).status == 0
        got = rumqd("sub", topic, "--from", "earliest", "-C", "1", "-F", "%l", *flags)
        assert got == (0, "1024000\n", "")


# --- mistakes, and what is said of them


@pytest.mark.parametrize(
    ("way", "flags", "words"),
    [
        (TLS, ["--tls-use-os-certs"], "by an unknown authority: set cafile to that"),
        (TLS, ["--cafile", "other-ca"], "by an unknown authority"),
        (
            MUTUAL,
            ["--cafile", "ca"],
            "the broker requires a client certificate: name one with cert and key",
        ),
        (
            MUTUAL,
            ["--cafile", "ca", *("--cert", "stranger", "--key", "stranger")],
            "does not trust the authority",
        ),
        (MUTUAL, ["--cafile", "ca", *("--cert", "expired", "--key", "expired")], "it has expired"),
        (PLAIN, ["--cafile", "ca"], "does not speak TLS"),
        (TLS, [], "0x83 this port speaks TLS"),
        (MUTUAL, [], "0x83 this port speaks TLS"),
        (WEBSOCKET, [], "0x83 this port speaks WebSocket"),
    ],
)
def test_a_mistake_is_named(site: Site, way: int, flags: list[str], words: str) -> None:
    kinds = {"--cafile": "pem", "--cert": "pem", "--key": "key"}
    named = [
        site.files.path(flag, kinds[before]) if before in kinds else flag
        for before, flag in zip(["", *flags], flags, strict=False)
    ]
    done = site.pub(way, *named)
    assert done.status == 1
    assert done.err.startswith("rumqd: ") and words in done.err, done
    assert "Traceback" not in done.err


def test_both_ends_name_tls_on_the_plain_port(site: Site) -> None:
    """RQD-15, one half: the client, of whichever make, and the broker's operator."""
    assert "does not speak TLS" in site.pub(PLAIN, *site.ca()).err
    site.said("a TLS hello on a plain port: the client wants TLS, this listener speaks plain MQTT")
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{site.ports[PLAIN]}"]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=False)
    assert b"wrong version number" in done.stderr


def test_both_ends_name_plain_on_the_tls_port(site: Site) -> None:
    """RQD-15, the other half."""
    assert "this port speaks TLS" in site.pub(TLS).err
    site.said("an MQTT CONNECT without TLS, and this port speaks TLS: set TLS in the client, or use the plain port")


def test_tls_at_a_websocket_port_and_the_other_way_round(site: Site) -> None:
    at = f"127.0.0.1:{site.ports[WEBSOCKET]}"
    assert "does not speak TLS" in rumqd("pub", "-L", f"mqtts://{at}/t", "-m", "x", *site.ca()).err
    at = f"127.0.0.1:{site.ports[TLS]}"
    assert "HTTP status 400: This port speaks TLS." in rumqd("pub", "t", "-L", f"ws://{at}", "-m", "x").err
    at = f"127.0.0.1:{site.ports[WEBSOCKET]}"
    assert "HTTP status 404" in rumqd("pub", "t", "-L", f"ws://{at}/elsewhere", "-m", "x").err
    at = f"127.0.0.1:{site.ports[PLAIN]}"
    assert "no port for WebSocket" in rumqd("pub", "t", "-L", f"ws://{at}", "-m", "x").err


def test_insecure_takes_another_name_but_no_other_authority(site: Site) -> None:
    assert "is for another name" in site.pub(ELSEWHERE, *site.ca()).err
    assert site.pub(ELSEWHERE, *site.ca(), "--insecure") == (0, "", "")
    assert "unknown authority" in site.pub(ELSEWHERE, *site.ca("other-ca"), "--insecure").err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--cafile", "missing"], "cafile: missing: No such file or directory"),
        (["--cafile", "{ca.key}"], "cafile: {ca.key}: contains no PEM certificates"),
        (["--cert", "{client.pem}"], "has no PEM certificate with its key: name the key with key"),
        (["--cert", "{client.pem}", "--key", "{server.key}"], "is not the key of {client.pem}"),
        (["--key", "{client.key}"], "is a key without a certificate"),
        (["-L", "mqtt://localhost/t", "--insecure"], "flags of TLS need mqtts:// or wss://"),
        (
            ["-L", "http://localhost/t"],
            "url: http://localhost/t: expected one of mqtt://, mqtts://, ws://, wss://",
        ),
        (["-L", "mqtts://u:pw@/t"], "url: mqtts:///t: names no host"),
        (["-L", "mqtts://localhost/t", "-h", "x"], "omit --host and --port"),
        (["-L", "mqtts://localhost:port/t"], "url: mqtts://localhost:port/t"),
    ],
)
def test_flags_that_cannot_be_are_refused_before_anything_is_sent(site: Site, flags: list[str], words: str) -> None:
    names = {"ca.key": site.files.path("client", "key")} | {
        f"{name}.{kind}": site.files.path(name, kind) for name in ("client", "server") for kind in ("pem", "key")
    }

    def filled(text: str) -> str:
        for name, path in names.items():
            text = text.replace(f"{{{name}}}", path)
        return text

    done = rumqd("pub", "t", "-m", "x", *map(filled, flags))
    assert done.status == 2, done
    assert filled(words) in done.err
    assert "pw" not in done.err
