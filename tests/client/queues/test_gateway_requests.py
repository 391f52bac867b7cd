"""Which gateway is asked, and what its answers mean: against servers of a few lines."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

import pytest
import trio

from rumq.client import ConnectionLost, QueueRefused, Reconnect
from rumq.client.queues.gateway_requests import (
    GatewayAddresses,
    GatewayRequests,
    ServerSentEvent,
    answer_of,
    checked_url,
    events_in,
)
from rumq.errors import ConfigError

SOON = Reconnect(first_seconds=0.001, seconds_max=0.01, attempts_max=20)


class Gateway:
    """Answers each request with the next of its bodies, or hangs up. seen: heads of requests"""

    def __init__(self, *answers: tuple[int, object] | None) -> None:
        self.answers, self.seen = list(answers), list[bytes]()
        self.url = ""

    async def serve(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        await trio.serve_listeners(self._answer, [listener], task_status=task_status)

    async def _answer(self, stream: trio.SocketStream) -> None:
        self.seen.append(bytes(await stream.receive_some()))
        answer = self.answers.pop(0)
        if answer is not None:
            status, body = answer
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(content)}\r\nconnection: close\r\n\r\n"
            await stream.send_all(head.encode() + content)


def unused() -> str:
    """An address where nobody listens: port 1 of loopback takes root to open."""
    return "http://127.0.0.1:1"


def problem(kind: str, status: int) -> tuple[int, object]:
    return status, {"type": f"/api/v1/docs#{kind}", "title": "t", "status": status, "detail": f"it is {kind}"}


def with_gateways(body: Callable[..., object], *gateways: Gateway) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for each in gateways:
                await nursery.start(each.serve)
            with trio.fail_after(60):
                await body(*gateways)  # type: ignore[misc]
            nursery.cancel_scope.cancel()

    trio.run(main)


def test_the_next_address_is_asked_where_nobody_is() -> None:
    """Also without a policy: the request was taken by nobody."""

    async def body(gateway: Gateway) -> None:
        requests = GatewayRequests(GatewayAddresses((unused(), gateway.url + "/"), "secret", None), None, 5.0)
        assert await requests.ask("GET", "queues", what="a look") == {"queues": []}
        assert requests.url == gateway.url  # where it stays
        assert b"GET /api/v1/queues HTTP" in gateway.seen[0] and b"authorization: Bearer secret" in gateway.seen[0]
        await requests.close()

    with_gateways(body, Gateway((200, {"queues": []})))


def test_a_request_that_was_cut_off_is_repeated_only_with_a_policy() -> None:
    async def body(gateway: Gateway) -> None:
        once = GatewayRequests(GatewayAddresses((gateway.url,), None, None), None, 5.0)
        with pytest.raises(ConnectionLost, match=r"127\.0\.0\.1"):
            await once.ask("POST", "queues/a/messages", [{"payload": b"x"}])
        assert len(gateway.seen) == 1
        again = GatewayRequests(GatewayAddresses((gateway.url,), lambda: b"made", None), SOON, 5.0)
        assert await again.ask("POST", "queues/a/messages", [{"payload": b"x"}]) == {"ids": ["1@a"]}
        assert len(gateway.seen) == 4 and b"Bearer made" in gateway.seen[3]
        await once.close()
        await again.close()

    with_gateways(body, Gateway(None, None, problem("unavailable", 503), (200, {"ids": ["1@a"]})))


def test_a_refusal_for_good_is_not_repeated() -> None:
    async def body(gateway: Gateway) -> None:
        requests = GatewayRequests(GatewayAddresses((gateway.url,), None, None), SOON, 5.0)
        with pytest.raises(QueueRefused, match=r"a look was refused \(not-found\): it is not-found"):
            await requests.ask("GET", "queues/a", what="a look")
        await requests.close()

    with_gateways(body, Gateway(problem("not-found", 404)))


def test_nobody_at_any_address_is_said_with_the_last_one() -> None:
    async def main() -> None:
        requests = GatewayRequests(GatewayAddresses((unused(),), None, None), None, 5.0)
        with pytest.raises(ConnectionLost, match=r"http://127.0.0.1:1: .*gateway.port"):
            await requests.ask("GET", "queues")
        await requests.close()

    trio.run(main)


@pytest.mark.parametrize(("status", "content"), [(404, b"<html>"), (200, b"[]"), (500, b""), (404, b'{"error": 1}')])
def test_what_is_no_gateway_is_said(status: int, content: bytes) -> None:
    with pytest.raises(QueueRefused, match="not as a gateway of rumq does"):
        answer_of("http://x", status, content, "a push")


def test_a_proxy_without_its_gateway_is_a_loss() -> None:
    with pytest.raises(ConnectionLost, match="proxy"):
        answer_of("http://x", 502, b"<html>", "a push")


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://a", "http://", "http://a:0", "http://a:b"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="http://HOST:PORT"):
        checked_url(url)


def test_events_are_read_as_html_says() -> None:
    """HTML, 9.2.6: comments, names, data of several lines; what an empty line does not end is none."""
    lines = ["retry: 2000", "event: consumer", "data: {}", "", ": ", "", "id: 1", "data:a", "data: b", "", "data: cut"]

    async def given() -> AsyncIterator[str]:
        for line in lines:
            yield line

    async def main() -> None:
        found = [each async for each in events_in(given())]
        assert found == [ServerSentEvent("consumer", b"{}"), ServerSentEvent("message", b"a\nb")]

    trio.run(main)
