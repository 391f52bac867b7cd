"""One HTTP connection over memory: requests and answers, their time limits by a fake clock, and what is no HTTP/1.1."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import h11
import pytest
import trio
from trio.testing import MemorySendStream, MockClock, memory_stream_pair

from rumq.gateway.http.http_connection import HEAD_BYTES_MAX, HEAD_SECONDS_MAX, HttpConnection, HttpPeer

IDLE_SECONDS, ANSWER_SECONDS = 60.0, 30.0
GET = b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n"
Stream = trio.StapledStream[MemorySendStream, trio.testing.MemoryReceiveStream]


class Application:
    """Answers with what it was asked. seen: its scopes and bodies"""

    def __init__(self) -> None:
        self.seen: list[tuple[dict[str, Any], bytes]] = []
        self.began: list[str] = []
        self.reads_bodies = True
        self.body = b"hello"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while self.reads_bodies:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        self.seen.append((scope, body))
        headers = [(b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class Place:
    def __init__(self, app: Any = None) -> None:
        self.app = app or Application()
        self.events: list[str] = []
        self.taken: bytes | None = None

    async def serve(self, stream: Any) -> None:
        connection = HttpConnection(
            stream, self.app, HttpPeer("10.0.0.1", 4711), "http", idle_seconds_max=IDLE_SECONDS,
            answer_seconds_max=ANSWER_SECONDS, on_request=self.events.append,
            on_idle=lambda is_kept: self.events.append("idle" if is_kept else "last"),
        )  # fmt: skip
        self.taken = await connection.serve()
        await stream.aclose()


def played(client: Callable[[Stream], Awaitable[Any]], app: Any = None) -> tuple[Any, Place]:
    """What the client returns, and the place, once the connection has ended."""
    place, found = Place(app), []

    async def body() -> None:
        here, there = memory_stream_pair()
        with trio.fail_after(1000):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(place.serve, there)
                found.append(await client(here))

    trio.run(body, clock=MockClock(autojump_threshold=0))
    return found[0], place


async def all_of(stream: Stream) -> bytes:
    got = b""
    while more := await stream.receive_some():
        got += more
    return got


def asked(*pieces: bytes) -> Callable[[Stream], Awaitable[bytes]]:
    async def client(stream: Stream) -> bytes:
        for piece in pieces:
            await stream.send_all(piece)
        await stream.send_eof()
        return await all_of(stream)

    return client


def test_requests_follow_each_other_on_a_connection_also_in_one_piece() -> None:
    got, place = played(asked(GET + GET + GET[:10], GET[10:]))
    assert got.count(b"HTTP/1.1 200") == 3 and got.endswith(b"\r\n\r\nhello")
    assert place.events == ["/a", "idle"] * 3
    scope, _ = place.app.seen[0]
    assert (scope["path"], scope["method"], scope["client"]) == ("/a", "GET", ("10.0.0.1", 4711))


def test_bodies_are_read_as_they_come() -> None:
    post = b"POST /b%20c?x=1 HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\n\r\nabc"
    chunked = b"POST /b HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nde\r\n"
    got, place = played(asked(post, b"def" + chunked, b"1\r\nf\r\n0\r\n\r\n"))
    assert got.count(b"HTTP/1.1 200") == 2
    assert [body for _, body in place.app.seen] == [b"abcdef", b"def"]
    assert place.app.seen[0][0]["path"] == "/b c" and place.app.seen[0][0]["query_string"] == b"x=1"


def test_head_has_no_body_and_old_clients_are_answered_until_the_end() -> None:
    got, _ = played(asked(b"HEAD /a HTTP/1.1\r\nhost: a\r\n\r\n"))
    assert b"content-length: 5" in got.lower() and got.endswith(b"\r\n\r\n") and b"\r\ndate: " in got.lower()
    got, _ = played(asked(b"GET /a HTTP/1.0\r\n\r\n"))
    assert got.endswith(b"hello")


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked() -> None:
    async def client(stream: Stream) -> bytes:
        await stream.send_all(b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        first = bytes(await stream.receive_some())
        await stream.send_all(b"ab")
        await stream.send_eof()
        return first + await all_of(stream)

    got, place = played(client)
    assert got.startswith(b"HTTP/1.1 100") and b"HTTP/1.1 200" in got
    assert place.app.seen[0][1] == b"ab"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET / HTTP/3.0\r\n\r\n", 505),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),
        (b"GET /\x00 HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * HEAD_BYTES_MAX, 431),
    ],
    ids=["h2c", "h3", "tls", "nul", "no host", "long"],
)
def test_what_is_no_http_1_1_is_refused(request_bytes: bytes, status: int) -> None:
    got, place = played(asked(request_bytes))
    assert got.startswith(b"HTTP/1.1 %d" % status), got
    assert not place.app.seen


def test_an_upgrade_to_http_2_is_answered_in_http_1_1() -> None:
    upgrade = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n"
    got, place = played(asked(GET[:-2] + upgrade + GET))
    assert got.count(b"HTTP/1.1 200") == 2 and b"101" not in got
    assert len(place.app.seen) == 2


def test_mqtt_over_websocket_is_handed_over_with_what_was_read_behind_it() -> None:
    data = b"GET /mqtt HTTP/1.1\r\nhost: a\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n\x82\x00"
    _, place = played(asked(GET + data))
    assert place.taken == data and place.events == ["/a", "idle"]
    got, place = played(asked(b"GET /mqtt HTTP/1.1\r\nhost: a\r\n\r\n"))
    assert place.taken == b"" and b"200" in got


# Time


def seconds_until_closed(*pieces: bytes, every: float = 0.0, app: Any = None) -> float:
    """Of a client that sends these, one each so many seconds, and reads nothing."""

    async def client(stream: Stream) -> float:
        began = trio.current_time()
        try:
            for piece in pieces:
                await stream.send_all(piece)
                await trio.sleep(every)
            await stream.receive_some(1) if every else None
        except trio.BrokenResourceError:
            pass
        return trio.current_time() - began

    return float(played(client, app)[0])


def test_a_silent_connection_is_closed() -> None:
    assert seconds_until_closed(b"", every=0.001) == pytest.approx(IDLE_SECONDS)


def test_a_head_that_drips_is_given_up() -> None:
    found = seconds_until_closed(*(bytes([byte]) for byte in GET * 9), every=2.0)
    assert found <= HEAD_SECONDS_MAX + 2.0


class Blocked:
    """A client's stream of which nothing is read any more."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.closed_at = 0.0

    async def receive_some(self, bytes_max: int) -> bytes:
        data, self._data = self._data, b""
        if not data:
            await trio.sleep_forever()
        return data

    async def send_all(self, data: bytes) -> None:
        await trio.sleep_forever()

    async def send_eof(self) -> None: ...

    async def aclose(self) -> None:
        self.closed_at = trio.current_time()


async def in_pieces(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await trio.sleep(1.0)
        await send({"type": "http.response.body", "body": b"x" * 10, "more_body": True})


def test_an_answer_that_nobody_reads_ends_the_connection() -> None:
    place, stream = Place(), Blocked(GET)

    async def body() -> float:
        began = trio.current_time()
        await place.serve(stream)
        return stream.closed_at - began

    assert trio.run(body, clock=MockClock(autojump_threshold=0)) == pytest.approx(ANSWER_SECONDS)
    assert place.events == ["/a"]


def test_an_answer_has_its_time_as_a_whole_however_small_its_pieces() -> None:
    async def client(stream: Stream) -> float:
        began = trio.current_time()
        await stream.send_all(GET)
        await all_of(stream)
        return trio.current_time() - began

    found, _ = played(client, in_pieces)
    assert found <= ANSWER_SECONDS + 3.0


def test_a_body_that_nobody_wants_does_not_hold_the_connection() -> None:
    app = Application()
    app.reads_bodies = False
    post = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n"

    async def client(stream: Stream) -> bytes:
        await stream.send_all(post)
        return await all_of(stream)

    got, place = played(client, app)
    assert got.endswith(b"hello") and place.events == ["/", "last"]


def test_an_application_hears_that_its_client_has_left() -> None:
    heard: list[str] = []

    async def waits(scope: Any, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            heard.append(message["type"])
            if message["type"] == "http.disconnect":
                return

    played(asked(GET + GET), waits)
    assert heard == ["http.request", "http.disconnect"]


def test_answers_are_what_another_parser_reads() -> None:
    got, _ = played(asked(GET))
    theirs = h11.Connection(h11.CLIENT)
    theirs.send(h11.Request(method="GET", target="/a", headers=[("host", "a")]))
    theirs.send(h11.EndOfMessage())
    theirs.receive_data(got)
    answer = theirs.next_event()
    assert isinstance(answer, h11.Response) and answer.status_code == 200


async def events(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for n in range(20):
        await trio.sleep(15.0)
        await send({"type": "http.response.body", "body": b": \n\n", "more_body": n < 19})


def test_server_sent_events_last_as_long_as_their_client_reads() -> None:
    async def client(stream: Stream) -> bytes:
        await stream.send_all(GET)
        return await all_of(stream)

    found, _ = played(client, events)
    assert found.count(b": \n\n") == 20, "five minutes, ten times what an answer has"


def test_server_sent_events_that_nobody_reads_end() -> None:
    place, stream = Place(events), Blocked(GET)

    async def body() -> float:
        began = trio.current_time()
        await place.serve(stream)
        return stream.closed_at - began

    assert trio.run(body, clock=MockClock(autojump_threshold=0)) == pytest.approx(15.0 + ANSWER_SECONDS)
