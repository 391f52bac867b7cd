"""Requests to the gateway of a broker, or to those of a cluster's nodes: any of them does for every queue.

Knows HTTP, tokens and which address to ask next; nothing of what is asked."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import trio

from rumq.client.queues.queue_errors import PushRefusal, QueueRefused
from rumq.client.session.back_off import BackOff, Reconnect
from rumq.client.session.options import Secret
from rumq.errors import ConfigError, ConnectionLost, Fault

if TYPE_CHECKING:
    import httpx  # it takes a while to import, and most clients have no queues

API = "/api/v1/"
MSGPACK, JSON, EVENTS = "application/msgpack", "application/json", "text/event-stream"
ANSWER_SECONDS_MAX = 40.0  # a gateway gives up after 30, and says something in a stream each 15
BEHIND = (502, 504)  # of a proxy whose gateway is away


class GatewayAddresses(NamedTuple):
    """urls: http[s]://HOST:PORT, tried in turn; token: a secret of `rumqd token add`, or a function that gives it

    tls: for https; None: the system's authorities"""

    urls: tuple[str, ...]
    token: Secret | Callable[[], Secret] | None
    tls: ssl.SSLContext | None


class ServerSentEvent(NamedTuple):
    name: str
    data: bytes


class GatewayRequests:
    """policy: how to go on where nobody answers; None: not at all, but other addresses are tried"""

    def __init__(self, addresses: GatewayAddresses, policy: Reconnect | None, connect_seconds_max: float) -> None:
        self._urls = [checked_url(each) for each in addresses.urls]
        self._token, self._tls = addresses.token, addresses.tls
        self._policy, self._connect_seconds_max = policy, connect_seconds_max
        self._http: httpx.AsyncClient | None = None

    @property
    def url(self) -> str:
        """Of the gateway that is asked next: it stays until it fails."""
        return self._urls[0]

    @property
    def count(self) -> int:
        """How many addresses there are."""
        return len(self._urls)

    def back_off(self) -> BackOff | None:
        return BackOff(self._policy) if self._policy is not None else None

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def ask(
        self, method: str, path: str, body: object = None, what: str = "", **parameters: object
    ) -> Mapping[str, Any]:
        """The answer. With a policy it asks until there is one, so that what is asked may be done more than once.

        what: is asked, for errors. raises: QueueRefused; ConnectionLost: it may have been done or not"""
        back_off, failures = self.back_off(), 0
        while True:
            url = self.url
            try:
                return await self.ask_one(url, method, path, body, what, **parameters)
            except (Unsent, ConnectionLost, QueueRefused) as fault:
                failures += 1
                self.avoid(url)
                if isinstance(fault, QueueRefused) and not fault.is_temporary:
                    raise
                if isinstance(fault, Unsent) and failures < len(self._urls):
                    continue  # nobody there; another address is as good
                pause = None if back_off is None else back_off.maybe_pause()
                if pause is None and isinstance(fault, Unsent):
                    raise ConnectionLost(fault.why) from None
                if pause is None:
                    raise
            await trio.sleep(pause)

    async def ask_one(
        self, url: str, method: str, path: str, body: object = None, what: str = "", **parameters: object
    ) -> Mapping[str, Any]:
        """Once, at that address. raises: QueueRefused, ConnectionLost, Unsent"""
        import httpx

        is_binary = path.endswith("/messages")  # payloads are bytes
        headers = {**self._login(), "content-type": MSGPACK if is_binary else JSON}
        encode = msgspec.msgpack.encode if is_binary else msgspec.json.encode
        content = None if body is None else encode(body)
        address, asked = f"{url}{API}{path}", as_parameters(parameters)
        try:
            response = await self._client().request(method, address, content=content, params=asked, headers=headers)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as fault:
            raise Unsent(sentence(url, fault)) from None
        except httpx.HTTPError as fault:
            raise ConnectionLost(sentence(url, fault)) from None
        return answer_of(url, response.status_code, response.content, what)

    @asynccontextmanager
    async def events(self, url: str, path: str, what: str, **parameters: object) -> AsyncIterator[AsyncIterator[Any]]:
        """Server-sent events of an address, until it ends. raises: QueueRefused, ConnectionLost, Unsent"""
        import httpx

        headers = {**self._login(), "accept": EVENTS}
        try:
            async with self._client().stream(
                "GET", f"{url}{API}{path}", params=as_parameters(parameters), headers=headers
            ) as response:
                if response.status_code != 200:
                    answer_of(url, response.status_code, await response.aread(), what)
                    raise ConnectionLost(f"{url} answered {response.status_code}")
                yield events_in(response.aiter_lines())
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as fault:
            raise Unsent(sentence(url, fault)) from None
        except httpx.HTTPError as fault:
            raise ConnectionLost(sentence(url, fault)) from None

    def avoid(self, url: str) -> None:
        """It failed: another one is next."""
        if self._urls[0] == url:
            self._urls.append(self._urls.pop(0))

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            import httpx

            timeout = httpx.Timeout(ANSWER_SECONDS_MAX, connect=self._connect_seconds_max)
            limits = httpx.Limits(max_connections=None)  # each channel has one for its stream
            self._http = httpx.AsyncClient(
                verify=self._tls or True, timeout=timeout, limits=limits, trust_env=False
            )  # fmt: skip
        return self._http

    def _login(self) -> dict[str, str]:
        secret = self._token() if callable(self._token) else self._token
        if secret is None:
            return {}
        return {"authorization": f"Bearer {secret.decode() if isinstance(secret, bytes) else secret}"}


class Unsent(Exception):
    """Nobody took the request: it was not done. why: a sentence"""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


async def events_in(lines: AsyncIterator[str]) -> AsyncIterator[ServerSentEvent]:
    """HTML, 9.2.6."""
    name = ""
    data: list[str] = []
    async for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield ServerSentEvent(name or "message", "\n".join(data).encode())
            name, data = "", []
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)


def answer_of(url: str, status: int, content: bytes, what: str) -> Mapping[str, Any]:
    """The body of an answer. raises: QueueRefused, ConnectionLost where it is no gateway's"""
    try:
        found = msgspec.json.decode(content)
    except msgspec.MsgspecError:
        found = None
    if status in (200, 201) and isinstance(found, dict):
        return found
    if status in BEHIND:
        raise ConnectionLost(f"{url} answered {status}: a proxy whose gateway is away")
    kind = found.get("type") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(kind, str):
        raise QueueRefused(
            what, "no-gateway", f"{url} answered {status}, not as a gateway of rumq does: is it that of gateway.port?"
        )
    refused = {each["number"]: PushRefusal(each["kind"], each["why"]) for each in found.get("refused", ())}
    detail = str(found.get("detail", found.get("title", status)))
    raise QueueRefused(what, kind.rpartition("#")[2], detail, refused, tuple(found.get("ids", ())))


def as_parameters(given: Mapping[str, object]) -> dict[str, Any]:
    as_text = {True: "true", False: "false"}
    return {name: as_text[each] if isinstance(each, bool) else each for name, each in given.items() if each is not None}


def checked_url(url: str) -> str:
    """Without a slash at the end. raises: ConfigError"""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise ConfigError(Fault("gateway", url, "", "expected http://HOST:PORT or https://HOST:PORT"))
    return url.rstrip("/")


def sentence(url: str, fault: Exception) -> str:
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"{url}: its certificate is not accepted: {cause.verify_message or cause}"
        cause = cause.__cause__ or cause.__context__
    why = str(fault) or type(fault).__name__
    return f"{url}: {why}: is it the gateway's address (gateway.port of the broker)?"
