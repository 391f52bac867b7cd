"""SaslHandshake and SaslAuthenticate. https://kafka.apache.org/protocol#sasl_handshake"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import trio

from rumq.auth.credentials.hashes import SCRAM
from rumq.auth.errors import SERVER_BUSY, Denied
from rumq.flight.serving.call_authorization import FlightCaller
from rumq.kafka.access.logins import PLAIN
from rumq.kafka.answers.connected_client import KafkaClient
from rumq.kafka.protocol.errors import ErrorCode, KafkaFault

T = TypeVar("T")


class KafkaLoginRefused(KafkaFault):
    """The connection ends, after the client was told. text: for the client"""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(why)
        self.text = text


def handshake(client: KafkaClient, version: int, body: dict[str, Any]) -> dict[str, Any]:
    offered = client.door.logins.mechanisms
    client.scram = None
    if body["mechanism"] not in offered:
        client.mechanism = ""
        return {"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": offered}
    client.mechanism = body["mechanism"]
    client.takes_raw_login = version == 0
    return {"error_code": ErrorCode.NONE, "mechanisms": offered}


async def authenticate(client: KafkaClient, data: bytes) -> dict[str, Any]:
    """The body of SaslAuthenticate's answer. raises: KafkaLoginRefused"""
    mechanism, logins = client.mechanism, client.door.logins
    if not mechanism:
        return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "error_message": "SaslHandshake names the mechanism first"}
    answer = b""
    try:
        if mechanism == PLAIN:
            caller = await in_thread(client, partial(logins.plain, data, client.peer, client.certificate))
        elif client.scram is None:
            client.scram = await in_thread(client, partial(logins.scram_first, data, client.peer, client.certificate))
            return {"auth_bytes": client.scram.challenge}
        else:
            begun, client.scram = client.scram, None
            caller, answer = await in_thread(client, partial(logins.scram_last, begun, data, client.peer))
    except Denied as denied:
        client.mechanism = ""
        client.door.figures.refused_logins += 1
        if denied.reason != SERVER_BUSY:
            client.door.event("kafka.refused", peer=client.peer, why=denied.why)
        raise KafkaLoginRefused(logins.refusal_text(denied), denied.why) from None
    client.mechanism = ""
    client.takes_raw_login = False
    if client.caller is not None and client.caller.user != caller.user:
        raise KafkaLoginRefused("a connection keeps its user", "a login as another user")
    client.caller = caller
    return {"auth_bytes": answer, "session_lifetime_ms": lifetime_ms(caller, client.door.now_us())}


async def begin_without_login(client: KafkaClient) -> None:
    """For who asks for something before it logs in. raises: KafkaLoginRefused"""
    logins = client.door.logins
    try:
        client.caller = await in_thread(client, partial(logins.without_login, client.peer, client.certificate))
    except Denied as denied:
        client.door.figures.refused_logins += 1
        client.door.event("kafka.refused", peer=client.peer, why=denied.why)
        raise KafkaLoginRefused(f"{PLAIN} or {SCRAM} is needed", denied.why) from None


def lifetime_ms(caller: FlightCaller, now_us: int) -> int:
    """Until the login must be repeated; 0: never."""
    return 0 if caller.expires_us is None else max(1, (caller.expires_us - now_us) // 1000)


async def in_thread(client: KafkaClient, call: Callable[[], T]) -> T:
    """raises: Denied"""
    return await trio.to_thread.run_sync(call, limiter=client.door.login_threads)
