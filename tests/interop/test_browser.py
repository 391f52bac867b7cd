"""MQTT.js in a real browser, over WebSocket, plain and with TLS: what examples/browser.html shows is what was said."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from rumq.cli.main import main
from tests.broker_process import Rumqd
from tests.interop.chromium import NAMES, Chromium, found
from tests.interop.conftest import BROKER

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "examples" / "browser.html"
SCRIPT = HERE / "node_modules" / "mqtt" / "dist" / "mqtt.min.js"
BROWSER = found()
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason=f"no browser is installed: sudo apt-get install {NAMES[0]}"),
    pytest.mark.skipif(BROKER != "rumqd", reason="for rumqd alone"),
]
SHOWN = "[...document.querySelectorAll('#messages tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *what: object) -> None: ...


@pytest.fixture(scope="module")
def site(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port at which the page is, with MQTT.js beside it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "browser.html").write_bytes(PAGE.read_bytes())
    (folder / "mqtt.min.js").write_bytes(SCRIPT.read_bytes())
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `rumqd certs dev` makes."""
    folder = tmp_path_factory.mktemp("certificates") / "certs"
    assert main(["certs", "dev", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def ports(site: int, certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """Of a broker for pages from 127.0.0.1: "ws" and "wss"."""
    folder = tmp_path_factory.mktemp("broker")
    websocket = (
        f'[[listener]]\nhost = "127.0.0.1"\nport = 0\nprotocol = "websocket"\nwebsocket_path = "/mqtt"\n'
        f'websocket_origins = ["http://127.0.0.1:{site}"]\n'
    )
    config = folder / "config.toml"
    config.write_text(
        f"[[listener]]\n{websocket}{websocket}tls_certificate = {json.dumps(str(certificates / 'server.pem'))}\n"
        f"tls_key = {json.dumps(str(certificates / 'server.key'))}\n"
    )
    rumqd = Rumqd(folder / "data", "--config", str(config))
    try:
        rumqd.start()
        _, plain, over_tls = (event["port"] for event in rumqd.named("listener.bound"))
        yield {"ws": plain, "wss": over_tls}
        assert rumqd.stop() == 0 and not rumqd.named("client.crashed")
    finally:
        rumqd.end()


@pytest.fixture(scope="module")
def chromium(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """It takes the one key of the development certificate, and no other that no authority stands for."""
    assert BROWSER is not None
    key = x509.load_pem_x509_certificate((certificates / "server.pem").read_bytes()).public_key()
    digest = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    known = f"--ignore-certificate-errors-spki-list={base64.b64encode(digest).decode()}"
    browser = Chromium(BROWSER, tmp_path_factory.mktemp("browser"), known)
    yield browser
    browser.end()


def fill(browser: Chromium, form: str, **fields: Any) -> None:
    """Do as a person does: fill in a form and press its button."""
    browser.run(
        f"(() => {{ const form = document.getElementById({form!r});"
        f"for (const [name, value] of Object.entries({json.dumps(fields)}))"
        " if (typeof value == 'boolean') form.elements[name].checked = value; else form.elements[name].value = value;"
        "form.querySelector('button').click(); })()"
    )


def state(browser: Chromium, text: str) -> None:
    browser.until(f"document.getElementById('state').textContent.startsWith({text!r})")


def told(browser: Chromium, text: str) -> None:
    browser.until(f"document.getElementById('told').textContent == {text!r}")


@pytest.mark.parametrize("protocol", ["ws", "wss"])
def test_a_page_publishes_and_subscribes(
    chromium: Chromium, site: int, ports: dict[str, int], topic: str, protocol: str
) -> None:
    url = f"{protocol}://127.0.0.1:{ports[protocol]}/mqtt"
    chromium.open(f"http://127.0.0.1:{site}/browser.html?url={url}")
    fill(chromium, "connect")
    state(chromium, f"connected to {url}")
    fill(chromium, "publish", topic=f"{topic}/kept", payload="ü <b>", qos="1", retain=True)
    told(chromium, f"published ü <b> to {topic}/kept")
    fill(chromium, "subscribe", filter=f"{topic}/#", qos="2")
    told(chromium, f"subscribed to {topic}/#, QoS 2")
    expected = [[f"{topic}/kept", "ü <b>", "QoS 1", "retained"]]
    for qos in "012":
        fill(chromium, "publish", topic=f"{topic}/{qos}", payload=f"message {qos}", qos=qos, retain=False)
        told(chromium, f"published message {qos} to {topic}/{qos}")
        expected.append([f"{topic}/{qos}", f"message {qos}", f"QoS {qos}", ""])
    big = "x" * 300_000
    fill(chromium, "publish", topic=f"{topic}/big", payload=big, qos="2", retain=False)
    expected.append([f"{topic}/big", big, "QoS 2", ""])
    chromium.until(f"{SHOWN}.length >= 5")
    assert chromium.run(SHOWN) == expected


def test_a_page_replays(chromium: Chromium, site: int, ports: dict[str, int], topic: str) -> None:
    chromium.open(f"http://127.0.0.1:{site}/browser.html?url=ws://127.0.0.1:{ports['ws']}/mqtt")
    fill(chromium, "connect")
    state(chromium, "connected")
    for n in range(3):
        fill(chromium, "publish", topic=topic, payload=f"{n}", qos="1", retain=False)
        told(chromium, f"published {n} to {topic}")
    fill(chromium, "subscribe", filter=f"$log/earliest/{topic}", qos="1")
    chromium.until(f"{SHOWN}.length >= 3")
    assert [row[1] for row in chromium.run(SHOWN)] == ["0", "1", "2"]


@pytest.mark.parametrize(("host", "welcome"), [("127.0.0.1", True), ("localhost", False)])
def test_a_page_from_elsewhere_may_not_connect(
    chromium: Chromium, site: int, ports: dict[str, int], host: str, welcome: bool
) -> None:
    """The same page at another name is another origin; the browser says where a page is from, and no script can lie."""
    chromium.open(f"http://{host}:{site}/browser.html")
    opened = (
        "new Promise((resolve) => {"
        f"const socket = new WebSocket('ws://127.0.0.1:{ports['ws']}/mqtt', 'mqtt');"
        "socket.onopen = () => { socket.close(); resolve('open'); }; socket.onerror = () => resolve('refused'); })"
    )
    assert chromium.run(opened) == ("open" if welcome else "refused")
