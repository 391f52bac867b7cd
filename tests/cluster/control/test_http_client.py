"""The client sends a request once, keeps connections, and knows whether anything was sent."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
import trio

from rumq.cluster.control import http_client
from rumq.cluster.control.http_client import HttpClient, HttpResponse, InvalidUrl, NotConnected, ResponseLost

SECONDS_MAX = 20.0
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def plain(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


class Server:
    """Answers the n-th request that it gets, on whichever connection, with the n-th of `answers`.

    A None closes the connection; so does the end of the answers."""

    def __init__(self, answers: Sequence[bytes | None]) -> None:
        self._answers = list(answers)
        self.connections = 0
        self.requests: list[bytes] = []
        self.url = ""
        self.ended = trio.Event()

    async def serve(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        async with stream:
            while request := await self._request(stream):
                self.requests.append(request)
                answer = self._answers.pop(0) if self._answers else None
                if answer is None:
                    break
                await stream.send_all(answer)
                if not self._answers:
                    break
        self.ended.set()

    async def _request(self, stream: trio.SocketStream) -> bytes:
        request = b""
        while b"\r\n\r\n" not in request or not request.endswith((b"}", b"\r\n\r\n")):
            data = await stream.receive_some()
            if not data:
                return b""
            request += data
        return request


@asynccontextmanager
async def serving(*answers: bytes | None) -> AsyncIterator[Server]:
    server = Server(answers)
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        yield server
        nursery.cancel_scope.cancel()


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with trio.fail_after(SECONDS_MAX):
            await main()

    trio.run(bounded)


def test_requests_one_after_another_share_a_connection() -> None:
    async def main() -> None:
        client = HttpClient()
        async with serving(plain(b"one"), plain(b"two", "503 Busy"), plain(b"")) as server:
            assert await client.request(server.url + "/a", b"{}", {"Authorization": "word"}) == HttpResponse(
                200, b"one"
            )
            assert await client.request(server.url + "/b", None, {}) == HttpResponse(503, b"two")
            assert server.connections == 1
            assert server.requests[0].startswith(b"POST /a HTTP/1.1\r\n") and b"word" in server.requests[0]
            assert server.requests[1].startswith(b"GET /b HTTP/1.1\r\n")
            await client.close()

    run(main)


def test_a_connection_that_the_other_end_has_closed_is_not_used_again() -> None:
    async def main() -> None:
        client = HttpClient()
        async with serving(plain(b"one")) as server:
            await client.request(server.url, b"{}", {})
            await server.ended.wait()
            server._answers = [plain(b"two"), plain(b"")]
            assert (await client.request(server.url, b"{}", {})).body == b"two"
            assert server.connections == 2

    run(main)


def test_a_connection_that_was_kept_for_too_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        client = HttpClient()
        async with serving(plain(b"one"), plain(b"two"), plain(b"")) as server:
            await client.request(server.url, b"{}", {})
            monkeypatch.setattr(http_client, "KEPT_SECONDS", 0.0)
            await client.request(server.url, b"{}", {})
            assert server.connections == 2

    run(main)


def test_without_a_connection_nothing_was_sent() -> None:
    async def main() -> None:
        async with serving() as server:
            url = server.url
        with pytest.raises(NotConnected):
            await HttpClient().request(url, b"{}", {})

    run(main)


@pytest.mark.parametrize(
    "answer",
    [None, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", b"no HTTP at all\r\n\r\n", CHUNKED + b"zz\r\n"],
)
def test_what_was_sent_and_got_no_whole_answer_is_told_apart(answer: bytes | None) -> None:
    async def main() -> None:
        async with serving(answer) as server:
            with pytest.raises(ResponseLost):
                await HttpClient().request(server.url, b"{}", {})

    run(main)


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "ANSWER_BYTES_MAX", 10)

    async def main() -> None:
        async with serving(plain(b"x" * 11)) as server:
            with pytest.raises(ResponseLost):
                await HttpClient().request(server.url, b"{}", {})

    run(main)


def test_lines_of_an_answer_that_goes_on_come_however_it_is_cut() -> None:
    async def main() -> None:
        async with (
            serving(CHUNKED + b"4\r\n{}\n{\r\n3\r\n}\n!\r\n0\r\n\r\n") as server,
            HttpClient().stream(server.url, b"{}", {}, SECONDS_MAX) as (status, lines),
        ):
            assert status == 200
            assert [line async for line in lines] == [b"{}", b"{}", b"!"]

    run(main)


@pytest.mark.parametrize("url", ["127.0.0.1:2379", "ftp://host", "http://", "http://host:port"])
def test_an_endpoint_that_is_no_url_is_refused(url: str) -> None:
    async def main() -> None:
        with pytest.raises(InvalidUrl):
            await HttpClient().request(url, b"{}", {})

    run(main)
