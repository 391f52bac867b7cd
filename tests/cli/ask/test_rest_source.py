"""What a gateway answers, or something that is none: each is a sentence with the way out."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest
import trio

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.cli.ask.questions import question_of
from rumq.cli.ask.rest_source import RestSource
from rumq.cli.ask.source import AskFailed

Handler = Callable[[httpx.Request], httpx.Response]
URL = "http://gateway:8080"


def ask(handler: Handler, name: str = "bans", request: q.Request | None = None, token: str = "s") -> object:
    async def main() -> object:
        source = RestSource(URL, token, transport=httpx.MockTransport(handler))
        try:
            return await source.ask(question_of(name), request or q.Nothing())
        finally:
            await source.close()

    return trio.run(main)


def test_a_query_is_got_with_its_fields_and_the_token() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"clients": [], "left_out": 3})

    found = ask(answer, "clients", q.Clients(client="pump-*", limit=5))
    assert isinstance(found, a.Clients) and found.left_out == 3
    (request,) = seen
    assert (request.method, request.url.path) == ("GET", "/api/v1/clients")
    assert dict(request.url.params) == {"client": "pump-*", "limit": "5", "offset": "0"}
    assert request.headers["authorization"] == "Bearer s"


def test_an_action_is_posted() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"disconnected": 1, "dropped": 0})

    ask(answer, "disconnect", q.OneClient(client="c"))
    assert (seen[0].method, seen[0].url.path) == ("POST", "/api/v1/actions/disconnect")
    assert msgspec.json.decode(seen[0].content) == {"client": "c"}


def test_a_page_of_more_rows_than_an_answer_has_is_asked_in_pieces() -> None:
    rows = [
        {"topic": str(n), "stream": "main", "partition": 0, "records": 1, "records_per_second": 0.0} for n in range(450)
    ]

    def answer(request: httpx.Request) -> httpx.Response:
        offset, limit = (int(request.url.params[name]) for name in ("offset", "limit"))
        assert limit <= 200
        some = rows[offset : offset + limit]
        return httpx.Response(200, json={"topics": some, "left_out": len(rows) - len(some)})

    found = ask(answer, "topics", q.Topics(limit=430))
    assert isinstance(found, a.Topics) and [row.topic for row in found.topics] == [str(n) for n in range(430)]
    assert found.left_out == 20
    all_of_them = ask(answer, "topics", q.Topics(limit=1000))
    assert isinstance(all_of_them, a.Topics) and (len(all_of_them.topics), all_of_them.left_out) == (450, 0)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, {"detail": "the token is not known"}, "does not know the token"),
        (403, {"detail": "it lacks the role administer"}, "needs another role"),
        (
            403,
            {"detail": "not permitted: the rules, and the way out"},
            "not permitted: the rules, and the way out",
        ),
        (404, {"detail": "there is nothing at '/api/v1/bans'"}, "knows no bans: its rumq is older"),
        (404, {"detail": "there is no client 'x'"}, f"{URL}: there is no client 'x'"),
        (404, "<html>", "is no gateway of rumq: it answers 404"),
        (413, {"detail": "8 bytes at most"}, "the request is too large (8 bytes at most)"),
        (429, {"detail": "wait"}, "too many requests"),
        (503, {"detail": "shard 1 does not answer"}, "the broker cannot answer now: shard 1 does not answer"),
        (503, "proxy", "is no gateway of rumq: it answers 503"),
        (400, {"detail": "no such place"}, f"{URL}: no such place"),
        (500, {"detail": "the gateway failed"}, "answers 500: the gateway failed"),
        (302, "", "is no gateway of rumq: it answers 302"),
        (200, "<html>hello", "is no gateway of rumq"),
        (200, {"hello": 1}, "is no gateway of rumq"),
    ],
)
def test_what_is_no_answer_is_a_sentence(status: int, body: object, says: str) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, **({"text": body} if isinstance(body, str) else {"json": body}))

    with pytest.raises(AskFailed) as failed:
        ask(answer)
    assert says in str(failed.value) and URL in str(failed.value)


def test_without_a_token_the_ways_to_give_one_are_named() -> None:
    with pytest.raises(AskFailed, match="RUMQ_TOKEN, --token-file, or a context"):
        ask(lambda _: httpx.Response(401, json={"detail": "no token"}), token="")


@pytest.mark.parametrize("url", ["gateway:8080", "ftp://a", "http://", "http://[", "mqtt://broker:1883"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(AskFailed, match="expected http://host:port or https://host:port"):
        RestSource(url, "")


def really(url: str, cafile: str = "") -> str:
    """What is said when nothing answers as a gateway there."""

    async def main() -> None:
        source = RestSource(url, "", cafile)
        try:
            await source.ask(question_of("bans"), q.Nothing())
        finally:
            await source.close()

    with pytest.raises(AskFailed) as failed:
        trio.run(main)
    return str(failed.value)


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """One connection is served."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def one() -> None:
            accepted, _ = server.accept()
            with accepted:
                try:
                    serve(accepted)
                except OSError:
                    pass

        thread = threading.Thread(target=one)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_nobody_there_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert f"http://127.0.0.1:{port}: nobody answers" in really(f"http://127.0.0.1:{port}")


def test_a_certificate_that_nobody_trusts_or_of_another_host_is_an_error(tmp_path: Path) -> None:
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.invalid").configure_cert(context)

    def serve(accepted: socket.socket) -> None:
        context.wrap_socket(accepted, server_side=True).recv(1)

    with listening(serve) as port:
        assert "its certificate is not accepted (unable to get local issuer" in really(f"https://127.0.0.1:{port}")
    with listening(serve) as port:
        said = really(f"https://127.0.0.1:{port}", str(tmp_path / "ca.pem"))
    assert "its certificate is not accepted (" in said and "--cafile" in said and "127.0.0.1" in said


def saying(words: bytes) -> Callable[[socket.socket], None]:
    def serve(accepted: socket.socket) -> None:
        accepted.recv(1 << 16)
        accepted.sendall(words)

    return serve


def test_plain_and_tls_are_told_from_each_other() -> None:
    with listening(saying(b"HTTP/1.1 400 no\r\n\r\n")) as port:
        assert "it does not speak TLS" in really(f"https://127.0.0.1:{port}")
    with listening(saying(b"\x15\x03\x03\0\2\2\n")) as port:
        assert "it does not speak HTTP" in really(f"http://127.0.0.1:{port}")
