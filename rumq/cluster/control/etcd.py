"""A small client of etcd's v3 API, over its JSON gateway. docs.etcd.io: "Why gRPC gateway".

Reads go on to the next endpoint until one answers. A change is sent once: to the next endpoint only if no connection
could be made, so that nothing was sent. Knows no shard: keys and values are bytes."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec
import trio

from rumq.cluster.control.errors import ControlRefused, OutcomeUnknown, Unreachable
from rumq.cluster.control.http_client import (
    HttpClient,
    InvalidUrl,
    NotConnected,
    ResponseLost,
    needs_tls,
    tls_context,
)

READ_SECONDS, CHANGE_SECONDS = 0.7, 1.0  # etcd's own limit is 7 s: by then we have asked another member
WATCH_SILENCE_SECONDS = 15.0  # some node writes its record each 10 s, so a silent watch is a dead one
UNAUTHENTICATED, EXHAUSTED = 16, 8
DEFINITE = {3, 5, 6, 7, 9, 11, 12, UNAUTHENTICATED}  # gRPC's codes of errors that say: nothing was done
Body = dict[str, object]
T = TypeVar("T")


class TlsFiles(NamedTuple):
    """Paths of PEM files; empty: the system's authorities, no certificate of ours."""

    ca: str = ""
    certificate: str = ""
    key: str = ""


NO_FILES = TlsFiles()


class KeyValue(msgspec.Struct, frozen=True):
    key: bytes
    value: bytes = b""
    mod_revision: int = 0
    lease: int = 0


class _Range(msgspec.Struct, frozen=True):
    kvs: list[KeyValue] = []


class _Response(msgspec.Struct, frozen=True):
    response_range: _Range = _Range()


class TxnResult(msgspec.Struct, frozen=True):
    succeeded: bool = False
    responses: list[_Response] = []

    @property
    def found(self) -> list[KeyValue]:
        return [each for response in self.responses for each in response.response_range.kvs]


class _Lease(msgspec.Struct, frozen=True):
    ID: int = 0
    TTL: int = 0


class _KeepAlive(msgspec.Struct, frozen=True):
    result: _Lease = _Lease()


class _Version(msgspec.Struct, frozen=True):
    etcdserver: str = ""


class _Member(msgspec.Struct, frozen=True):
    cluster_id: int = 0
    member_id: int = 0


class _Listed(msgspec.Struct, frozen=True):
    ID: int = 0
    clientURLs: list[str] = []


class EtcdMembers(msgspec.Struct, frozen=True):
    """Of the etcd that was asked, as it knows them."""

    header: _Member = _Member()
    members: list[_Listed] = []

    @property
    def names(self) -> str:
        """The cluster's id and its members', with the addresses that they tell."""
        each = sorted(f"{member.ID:x} {' '.join(sorted(member.clientURLs))}" for member in self.members)
        return f"{self.header.cluster_id:x}: {', '.join(each)}"


class EtcdStatus(msgspec.Struct, frozen=True, rename={"stored_bytes": "dbSize"}):
    header: _Member = _Member()
    version: str = ""
    leader: int = 0
    stored_bytes: int = 0


class _Token(msgspec.Struct, frozen=True):
    token: str = ""


class _Fault(msgspec.Struct, frozen=True):
    error: str = ""
    message: str = ""
    code: int = 2


class _WatchEvents(msgspec.Struct, frozen=True):
    created: bool = False
    canceled: bool = False
    cancel_reason: str = ""


class _WatchLine(msgspec.Struct, frozen=True):
    result: _WatchEvents = _WatchEvents()
    error: object = None


class EtcdFault(Exception):
    """etcd answered with an error. code: gRPC's"""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


def http_client(endpoints: list[str], tls: TlsFiles) -> HttpClient:
    """The files are read where there is an endpoint or a file for TLS. raises: ControlRefused"""
    if not needs_tls(endpoints) and not any(tls):
        return HttpClient()
    try:
        return HttpClient(tls_context(tls.ca, tls.certificate, tls.key))
    except (OSError, ssl.SSLError) as fault:
        files = ", ".join(filter(None, tls))
        raise ControlRefused(f"the TLS files for etcd ({files}) cannot be used: {fault}") from fault


class Etcd:
    """endpoints: URLs, "http://host:2379"; the one that answered last is asked first."""

    def __init__(self, endpoints: list[str], tls: TlsFiles = NO_FILES, user: str = "", password: str = "") -> None:
        if not endpoints:
            raise ControlRefused("cluster.etcd has no endpoint: write one, as http://127.0.0.1:2379")
        self.endpoints = [each.rstrip("/") for each in endpoints]
        self.requests = 0
        self._http = http_client(self.endpoints, tls)
        self._user, self._password, self._token = user, password, ""
        self._watches: set[trio.CancelScope] = set()

    async def read(self, key: bytes, end: bytes = b"") -> list[KeyValue]:
        """A linearisable read of a key, or of all from `key` up to `end`."""
        body: Body = {"key": key}
        if end:
            body["range_end"] = end
        return (await self._ask("/v3/kv/range", body, _Range)).kvs

    async def change(self, compare: list[Body], success: list[Body], failure: list[Body]) -> TxnResult:
        """One transaction, sent once. raises: OutcomeUnknown, Unreachable (nothing was sent), ControlRefused"""
        body: Body = {"compare": compare, "success": success, "failure": failure}
        return await self._ask("/v3/kv/txn", body, TxnResult, is_change=True)

    async def grant(self, seconds: int) -> int:
        """The id of a new lease. One that nobody hears of expires."""
        return (await self._ask("/v3/lease/grant", {"TTL": seconds}, _Lease)).ID

    async def keep_alive(self, lease: int) -> int:
        """Seconds that the lease has from now on; 0: there is none."""
        return (await self._ask("/v3/lease/keepalive", {"ID": lease}, _KeepAlive)).result.TTL

    async def revoke(self, lease: int) -> None:
        await self._ask("/v3/lease/revoke", {"ID": lease}, _Lease)

    async def version(self, endpoint: str) -> str:
        """raises: Unreachable"""
        return (await self._ask_one(endpoint, "/version", None, _Version)).etcdserver

    async def status(self, endpoint: str) -> EtcdStatus:
        """raises: Unreachable"""
        return await self._ask_one(endpoint, "/v3/maintenance/status", {}, EtcdStatus)

    async def members(self, endpoint: str) -> EtcdMembers:
        """raises: Unreachable, ControlRefused"""
        return await self._ask_one(endpoint, "/v3/cluster/member/list", {}, EtcdMembers)

    async def watch(self, key: bytes, end: bytes, hint: Callable[[], None]) -> None:
        """Call `hint` when the watch stands and at each event; returns or raises Unreachable when it has ended."""
        endpoint = self.endpoints[0]
        body = msgspec.json.encode({"create_request": {"key": key, "range_end": end}})
        with trio.CancelScope() as scope:
            self._watches.add(scope)
            try:
                await self._login()
                async with self._http.stream(endpoint + "/v3/watch", body, self._headers(), READ_SECONDS) as (
                    status,
                    lines,
                ):
                    while True:
                        with trio.fail_after(WATCH_SILENCE_SECONDS):
                            line = await anext(lines, b"")
                        if not line:
                            return
                        said = decoded(line, _WatchLine)
                        if said.error or said.result.canceled or status != 200:
                            self._token = ""
                            words = line[:200].decode(errors="replace")
                            raise Unreachable(f"{endpoint} ended a watch: {words}")
                        hint()
            except InvalidUrl as fault:
                raise ControlRefused(f"cluster.etcd: {endpoint!r} is no URL of etcd: {fault}") from fault
            except (NotConnected, ResponseLost, trio.TooSlowError, EtcdFault) as fault:
                raise Unreachable(f"{endpoint}: {type(fault).__name__} {fault}") from fault
            finally:
                self._watches.discard(scope)

    async def close(self) -> None:
        await self._http.close()

    async def _ask(self, path: str, body: Body, kind: type[T], *, is_change: bool = False) -> T:
        why = []
        for endpoint in list(self.endpoints):
            seconds = CHANGE_SECONDS if is_change else READ_SECONDS
            try:
                return await self._post_with_login(endpoint, path, body, kind, seconds)
            except NotConnected as fault:
                said = str(fault)
            except (ResponseLost, EtcdFault) as fault:
                said = fault.message if isinstance(fault, EtcdFault) else str(fault)
                if isinstance(fault, EtcdFault) and fault.code == EXHAUSTED:
                    raise Unreachable(f"{endpoint}: {said}") from fault
                if isinstance(fault, EtcdFault) and fault.code in DEFINITE:
                    raise ControlRefused(f"etcd at {endpoint} refuses {path}: {said}") from fault
                if is_change:
                    self._turn_from(endpoint)
                    raise OutcomeUnknown(f"{endpoint}: {said}") from fault
            self._turn_from(endpoint)
            why.append(f"{endpoint}: {said}")
        raise Unreachable("; ".join(why))

    async def _ask_one(self, endpoint: str, path: str, body: Body | None, kind: type[T]) -> T:
        try:
            return await self._post_with_login(endpoint, path, body, kind, READ_SECONDS)
        except (NotConnected, ResponseLost, EtcdFault) as fault:
            raise Unreachable(f"{endpoint}: {fault}") from fault

    async def _post_with_login(self, endpoint: str, path: str, body: Body | None, kind: type[T], seconds: float) -> T:
        """A token that is too old is refused before anything is done, so that the request may be sent once more."""
        with_token = bool(self._user)
        for is_last in (False, True):
            if with_token and not self._token:
                await self._login(endpoint)
            try:
                return decoded(await self._post(endpoint, path, body, seconds), kind)
            except EtcdFault as fault:
                stale = fault.code == UNAUTHENTICATED or "auth: revision" in fault.message
                if is_last or not with_token or not stale:
                    raise
                self._token = ""
        raise AssertionError("unreachable")

    async def _login(self, endpoint: str = "") -> None:
        """raises: as `_post`; ControlRefused for a wrong password"""
        if not self._user or self._token:
            return
        endpoint = endpoint or self.endpoints[0]
        body: Body = {"name": self._user, "password": self._password}
        try:
            self._token = decoded(await self._post(endpoint, "/v3/auth/authenticate", body, READ_SECONDS), _Token).token
        except EtcdFault as fault:
            if "not enabled" in fault.message:
                self._token, self._user = "", ""  # whoever may connect may do anything there
                return
            if fault.code in DEFINITE:
                raise ControlRefused(f"etcd at {endpoint} refuses the user {self._user!r}: {fault.message}") from fault
            raise

    async def _post(self, endpoint: str, path: str, body: Body | None, seconds: float) -> bytes:
        """One request. body: None for a GET. raises: NotConnected, ResponseLost, EtcdFault"""
        self.requests += 1
        content = None if body is None else msgspec.json.encode(body)
        try:
            with trio.fail_after(seconds):
                status, answer = await self._http.request(endpoint + path, content, self._headers())
        except InvalidUrl as fault:
            raise ControlRefused(f"cluster.etcd: {endpoint!r} is no URL of etcd: {fault}") from fault
        except trio.TooSlowError:
            raise ResponseLost(f"no answer within {seconds:g} s") from None
        if status == 200:
            return answer
        try:
            said = msgspec.json.decode(answer, type=_Fault, strict=False)
        except msgspec.MsgspecError:
            said = _Fault(message=answer[:200].decode(errors="replace"), code=14)
        raise EtcdFault(said.code, said.message or said.error)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": self._token} if self._token else {}

    def _turn_from(self, endpoint: str) -> None:
        """The next endpoint comes first from now on; a watch moves there too, for it may be deaf."""
        if len(self.endpoints) > 1 and self.endpoints[0] == endpoint:
            self.endpoints.append(self.endpoints.pop(0))
            for scope in self._watches:
                scope.cancel()


def decoded(content: bytes | str, kind: type[T]) -> T:
    """etcd's JSON, in which 64-bit numbers are strings. raises: EtcdFault (14), for what is no answer of etcd"""
    try:
        return msgspec.json.decode(content, type=kind, strict=False)
    except msgspec.MsgspecError as fault:
        raise EtcdFault(14, f"not an answer of etcd: {fault}") from fault
