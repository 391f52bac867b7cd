"""Asks a gateway over REST, with the certificate verified and the token of the user."""

from __future__ import annotations

import ssl
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from rumq.admin import requests as q
from rumq.admin.operations import OPERATIONS
from rumq.cli.ask.questions import Question
from rumq.cli.ask.source import AskFailed

ROWS_MAX = 200  # of one answer
DONE = (200, 201)
SECONDS_MAX = 35.0  # a gateway gives up after 30


class RestSource:
    """url: http[s]://host:port; cafile: PEM file of authorities, empty: the system's

    transport: of a test; the real one by default"""

    def __init__(
        self, url: str, token: str, cafile: str = "", *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        """raises: AskFailed for a URL or cafile that cannot be used"""
        self.name = url.rstrip("/")
        try:
            address = urlsplit(self.name)
            if address.scheme not in ("http", "https") or not address.hostname or address.port == 0:
                raise ValueError
        except ValueError:
            raise AskFailed(f"--url {url}: expected http://host:port or https://host:port") from None
        self._token = token
        headers = {"authorization": f"Bearer {token}"} if token else {}
        try:
            if not token.isascii() or not token.isprintable():
                raise AskFailed("the token has characters that no token has: is it the right file?")
            verify: Any = ssl.create_default_context(cafile=cafile or None)
        except (OSError, ssl.SSLError) as fault:
            raise AskFailed(f"--cafile {cafile}: {fault.strerror or fault}") from None
        self._client = httpx.AsyncClient(
            base_url=self.name, headers=headers, timeout=SECONDS_MAX, verify=verify, transport=transport,
            trust_env=False,
        )  # fmt: skip

    async def ask(self, question: Question, request: q.Request) -> Any:
        """A page of more rows than the gateway gives at once is asked in pieces. raises: AskFailed"""
        if not isinstance(request, q.Paged) or request.limit <= ROWS_MAX:
            return await self._ask(question, request)
        answer: Any = None
        rows: list[Any] = []
        offset, until = request.offset, min(request.offset + request.limit, q.ROWS_MAX)
        while offset < until:
            piece = msgspec.structs.replace(request, offset=offset, limit=min(ROWS_MAX, until - offset))
            found = await self._ask(question, piece)
            more = rows_of(question, found)
            total = found.left_out + len(more)
            if answer is None:
                answer, rows = found, more
            else:
                rows += more
            answer.left_out = total - len(rows)
            offset += piece.limit
            if len(more) < piece.limit:
                break
        return answer

    async def close(self) -> None:
        await self._client.aclose()

    async def _ask(self, question: Question, request: q.Request) -> Any:
        given = {name: value for name, value in msgspec.to_builtins(request).items() if value is not None}
        path, rest = question.located(given)
        body: dict[str, Any] | None = None
        if question.method == "post":
            names = question.in_body if question.in_path else frozenset(rest)
            body = {name: rest.pop(name) for name in names if name in rest}
        try:
            response = await self._client.request(
                question.method.upper(), f"/api/v1/{path}", params=as_parameters(rest), json=body
            )
        except httpx.HTTPError as fault:
            raise AskFailed(self._unreachable(fault)) from None
        if response.status_code not in DONE:
            raise AskFailed(self._refused(response, question))
        try:
            found: msgspec.Struct = msgspec.json.decode(response.content, type=question.answer)
        except msgspec.MsgspecError:
            raise AskFailed(
                f"{self.name} is no gateway of rumq, or of another version: its answer is another one"
            ) from None
        return found

    def _unreachable(self, fault: httpx.HTTPError) -> str:
        cause: BaseException | None = fault
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return (
                    f"{self.name}: its certificate is not accepted ({cause.verify_message or cause}): name the "
                    "authority with --cafile, and the host as in the certificate"
                )
            if isinstance(cause, ssl.SSLError):
                return (
                    f"{self.name}: it does not speak TLS ({cause.reason or cause}): is it http:// instead of https://?"
                )
            cause = cause.__cause__ or cause.__context__
        if isinstance(fault, httpx.TimeoutException):
            return f"{self.name} does not answer in time"
        if isinstance(fault, httpx.RemoteProtocolError):
            return f"{self.name}: it does not speak HTTP ({fault}): is it https:// instead of http://?"
        why = str(fault) or type(fault).__name__
        return f"{self.name}: nobody answers ({why}): check the address, and gateway.port of the broker"

    def _refused(self, response: httpx.Response, question: Question) -> str:
        """What an answer other than 200 means, as a sentence with the way out."""
        try:
            why = str(msgspec.json.decode(response.content, type=dict[str, Any]).get("detail") or "")
        except (msgspec.MsgspecError, UnicodeDecodeError):
            why = ""
        match response.status_code:
            case 401 if not self._token:
                return f"{self.name} wants a token: RUMQ_TOKEN, --token-file, or a context (rumqd context add)"
            case 401:
                return f"{self.name} does not know the token ({why}): rumqd token add makes one on the broker's machine"
            case 403 if why.startswith("not permitted"):  # by rules: the sentence has the way out
                return f"{self.name}: {why}"
            case 403:
                return f"{self.name}: the token may not do this ({why}): it needs another role (rumqd token add --role)"
            case 404 if why.startswith("there is nothing at"):
                return f"{self.name} knows no {question.name}: its rumq is older than this one"
            case 404 if why:
                return f"{self.name}: {why}"
            case 413:
                return f"{self.name}: the request is too large ({why})"
            case 429:
                return f"{self.name} refuses too many requests of this address: wait, and check the token"
            case 503 if why:
                return f"{self.name}: the broker cannot answer now: {why}"
            case 400 | 415 | 422 if why:
                return f"{self.name}: {why}"
            case status if why:
                return f"{self.name} answers {status}: {why}"
            case status:
                return f"{self.name} is no gateway of rumq: it answers {status} {response.reason_phrase}"


def as_parameters(given: dict[str, Any]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


def rows_of(question: Question, answer: msgspec.Struct) -> list[Any]:
    """Of an answer that is a page."""
    rows: list[Any] = getattr(answer, OPERATIONS[question.name].rows)
    return rows
