"""A server that is asked who may come in, and answers something else than yes: nobody comes in by it.

A page of an error, a captive portal, a proxy that redirects to a login, a JSON `false`: all of them come with 200, or
lead to what does."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rumq.auth.credentials.authenticator import outcome
from rumq.auth.credentials.callout import CallOut
from rumq.auth.credentials.verification_cache import VerificationCache
from rumq.auth.errors import Denied
from rumq.auth.identity import Credentials, Identity, Work
from rumq.net.http_post import post
from tests.broker_process import Rumqd
from tests.conformance.peer import Peer

DEEP = b"[" * 50_000
NO_YES: list[tuple[int, bytes]] = [
    (200, b""), (200, b"false"), (200, b"null"), (200, b"[]"), (200, b'"deny"'), (200, b'"allow"'), (200, b"0"),
    (200, b"true"), (200, b"1"), (200, b"{}"), (200, b"<html>log in</html>"), (200, b'{"result": "deny"}'),
    (200, b'{"user": "root"}'), (200, b'{"allow": "true"}'), (200, b'{"allow": 1}'), (200, b'{"allow": null}'),
    (200, b'{"allow": true, "user": ""}'), (200, b'{"allow": true, "user": 7}'), (200, DEEP),
    (200, b'{"allow": true, "groups": [1]}'), (200, b'{"allow": true, "seconds": true}'),
    (200, b'{"allow": true, "seconds": NaN}'), (200, b'{"allow": true, "seconds": -1}'),
    (200, b'{"allow": true, "seconds": 1e400}'), (200, b'{"allow": true, "ignore": true, "groups": 0}'),
    (201, b'{"allow": true}'), (302, b""), (500, b'{"allow": true}'),
]  # fmt: skip
REFUSED = [(200, b'{"allow": false}'), (200, b'{"allow": false, "ignore": true}'), (401, b""), (403, b"")]


def decided(status: int, body: bytes, now: float = 0.0, method: CallOut | None = None) -> Identity | None:
    method = method or CallOut(lambda _: (status, body), VerificationCache(60.0))
    steps = method.check(Credentials("c", "alice", b"p", now=now))
    try:
        step = next(steps)
        assert isinstance(step, Work)
        found = outcome(steps, step.run())
    except StopIteration as end:
        found = end.value
    assert found is None or isinstance(found, Identity)
    return found


@pytest.mark.parametrize(("status", "body"), NO_YES)
def test_what_is_no_yes_lets_nobody_in(status: int, body: bytes) -> None:
    with pytest.raises(Denied) as denied:
        decided(status, body)
    assert denied.value.reason == 0x88


@pytest.mark.parametrize(("status", "body"), REFUSED)
def test_a_no_is_a_wrong_password(status: int, body: bytes) -> None:
    with pytest.raises(Denied) as denied:
        decided(status, body)
    assert (denied.value.reason, denied.value.guess) == (0x86, True)


def test_a_yes_lets_in_and_one_that_does_not_know_leaves_it_to_the_next() -> None:
    assert decided(204, b"") == decided(200, b'{"allow": true}') == Identity("alice", method="http")
    assert decided(200, b'{"ignore": true}') is None


def test_a_yes_for_longer_than_numbers_go_holds_as_long_as_any() -> None:
    """10 to the 400 is no float, and a comparison with it must not end in an error."""
    remembered: VerificationCache[Identity] = VerificationCache(60.0)
    asked: list[bytes] = []
    body = b'{"allow": true, "seconds": 1%s}' % (b"0" * 400)
    method = CallOut(lambda question: (200, asked.append(question) or body), remembered)  # type: ignore[func-returns-value]
    assert decided(200, body, method=method) is not None
    assert decided(200, body, 59.0, method) is not None and len(asked) == 1
    assert decided(200, body, 61.0, method) is not None and len(asked) == 2


class Answers(BaseHTTPRequestHandler):
    def __init__(self, seen: list[str], *arguments: Any) -> None:
        self.seen = seen
        super().__init__(*arguments)

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        self.seen.append(f"{self.command} {self.path} {len(self.rfile.read(size)) > 0}")
        if self.path == "/welcome":
            body = b'{"allow": true}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            self.send_response(int(self.path.strip("/")))
            self.send_header("Location", "/welcome")
            self.send_header("Content-Length", "0")
            self.end_headers()

    do_GET = do_POST = answer

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    seen: list[str] = []
    made = ThreadingHTTPServer(("127.0.0.1", 0), partial(Answers, seen))
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}", seen
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(server: tuple[str, list[str]], status: int) -> None:
    url, seen = server
    assert post(f"{url}/{status}", 5.0, json.dumps({"password": "p"}).encode()) == (status, b"")
    assert seen == [f"POST /{status} True"], "nobody else is shown the password"


def test_a_broker_whose_server_redirects_lets_nobody_in(tmp_path: Path, server: tuple[str, list[str]]) -> None:
    url, seen = server
    told = {}
    for path in ("302", "welcome"):
        broker = Rumqd(tmp_path / path, "--set", f"auth.http_url={url}/{path}", "--set", "auth.anonymous=no")
        broker.start()
        try:
            told[path] = Peer(broker.address).connect("c", username="alice", password=b"p").code
        finally:
            broker.end()
    assert told == {"302": 0x88, "welcome": 0}
    assert seen == ["POST /302 True", "POST /welcome True"]
