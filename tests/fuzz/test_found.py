"""What fuzzing has found, each with the bytes that showed it."""

from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.auth.credentials.authenticator import outcome
from rumq.auth.credentials.scram import Scram
from rumq.auth.credentials.tokens import TokenLogin, parse_keys
from rumq.auth.errors import Denied
from rumq.auth.identity import Credentials, Work
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.net.certificate import BadDer, oid_text
from rumq.net.websocket.websocket_handshake import WebSocketOptions, answer
from rumq.session.protocol.replay_syntax import BadStart, parse_start
from tests.conformance.wire import Kind
from tests.faults.shard import Client, Shard
from tests.fuzz.auth import FIRST, SECRET, USERS
from tests.net.websocket.test_websocket import request


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


def suback_reasons(client: Client, *filters: str) -> list[int]:
    """What a SUBSCRIBE is answered with."""
    client.say(encode(p.Subscribe(7, tuple(p.SubscriptionRequest(name) for name in filters)), client.version))
    for _ in range(32):  # a long one takes its turns
        client.shard.settle()
    (packet,) = [packet for packet in client.take() if packet.kind == Kind.SUBACK]
    assert not client.closed and not client.shard.told("client.crashed")
    return list(packet.codes)


ODD = [
    "$log/earliest",
    "$log/",
    "$log/-1h#",
    "$log/" + "retained@" * 200 + "-1h/a",
    "$log/-" + "9" * 5000 + "s/a",
]
REFUSED = [0x8F, 0x8F, 0x8F, 0x8F, 0]  # so long ago is the beginning


@pytest.mark.parametrize("written", range(len(ODD)))
@pytest.mark.parametrize("others", [0, 40])
def test_a_replay_that_is_none_is_refused_and_nobody_else_notices(shard: Shard, written: int, others: int) -> None:
    """With many others it is served at the beginning of a turn, where a fault would have ended the whole shard."""
    client = Client(shard, "c", 5)
    more = [f"some/other/filter/{n}" for n in range(others)]
    assert suback_reasons(client, *more, ODD[written]) == [0] * others + [REFUSED[written]]


@pytest.mark.parametrize("version", [4, 5])
def test_a_refusal_that_shows_what_was_typed_fits_into_a_packet(shard: Shard, version: int) -> None:
    client = Client(shard, "c", version)
    assert suback_reasons(client, "$log/" + "x" * 60_000 + "/a") == [0x8F if version == 5 else 0x80]
    assert suback_reasons(client, "$log/" + "x" * 60_000) == [0x8F if version == 5 else 0x80]


@pytest.mark.parametrize("text", ["retained@" * 7000 + "-1h", "-" + "9" * 60_000 + "x", "9" * 60_000])
def test_a_place_as_long_as_it_gets_is_refused(text: str) -> None:
    with pytest.raises(BadStart) as refused:
        parse_start(text, "a", 0)
    assert len(str(refused.value)) < 1000


def test_times_ago_of_many_digits_are_before_everything() -> None:
    now_us = 10**15
    for digits in ("9" * 18, "9" * 19, "9" * 20, "9" * 60_000):
        assert parse_start(f"-{digits}s", "a", now_us) == ("time", 0)
    assert parse_start("-100s", "a", now_us) == ("time", now_us - 100_000_000)
    assert parse_start("-0000000000000000001d", "a", now_us) == ("time", now_us - 86_400_000_000)


@pytest.mark.parametrize(
    "second",
    [
        b"\x10\x0d\x00\x06MQIsdp\x09\x02\x00\x00\x00\x01a", b"\x10\x0d\x00\x04MQTT\x06\x02\x00\x00\x00\x00\x01a",
        b"\x10\x0c\x00\x04MQTT\x04\x00\x00\x00\x00\x00",
    ],
)  # fmt: skip
def test_a_second_connect_is_a_protocol_error_whatever_is_wrong_with_it(shard: Shard, second: bytes) -> None:
    """MQTT 5.0, 3.1.0-2; what is wrong with it may have a reason code that no DISCONNECT has."""
    client = Client(shard, "c", 5)
    client.say(second)
    (packet,) = client.take()
    assert packet.kind == Kind.DISCONNECT and packet.code in (0x81, 0x82)
    assert client.closed and not shard.told("client.crashed")


@pytest.mark.parametrize(
    "header", ["Connection", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "Host", "Upgrade"]
)
def test_a_header_that_is_no_ascii_is_refused_in_words(header: str) -> None:
    head = request(**{header.replace("-", "_"): "\xff\xe4"}).decode().encode("latin-1")
    found = answer(head, WebSocketOptions())
    assert found.data.startswith(b"HTTP/1.1 4") and found.why


def test_a_proof_that_is_no_ascii_is_refused() -> None:
    steps = Scram(USERS, bytes(32), bytes).check(Credentials("c", method="SCRAM-SHA-256", data=FIRST))
    step: Any = outcome(steps)
    nonce = step.data.split(b",")[0]
    with pytest.raises(Denied):
        outcome(steps, b"c=biws," + nonce + b",p=\xc3\xa9")


@pytest.mark.parametrize("groups", [7, True, {"a": 1}])
def test_groups_of_a_token_that_are_no_list_are_refused(groups: object) -> None:
    steps = TokenLogin(parse_keys(SECRET.decode(), "keys")).check(
        Credentials("c", None, jwt.encode({"sub": "a", "groups": groups}, SECRET, "HS256").encode())
    )
    step = outcome(steps)
    assert isinstance(step, Work)
    with pytest.raises(Denied):
        outcome(steps, step.run())


@pytest.mark.parametrize("size", [129, 5000, 60_000])
def test_an_object_identifier_as_long_as_it_gets_is_refused(size: int) -> None:
    """Of a certificate that nobody has signed, too: why it is refused is told with its name."""
    with pytest.raises(BadDer):
        oid_text(b"\xff" * (size - 1) + b"\x01")
    assert len(oid_text(b"\xff" * 127 + b"\x01")) > 200
