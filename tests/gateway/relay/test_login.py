"""CONNECT of a relayed client: the broker gets all of it but the secret, however its bytes arrive."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.gateway.access.tokens import Token
from rumq.gateway.relay.login import Login, LoginRefused, check_roles, for_broker, secret_of
from rumq.mqtt import packets as p
from rumq.mqtt.connect import decode_connect
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import FrameReader, write_frame
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason

BYTES_MAX = 128 * 1024
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
TOPICS = st.text("ab/é", min_size=1, max_size=10)
WILL_PROPERTIES = st.fixed_dictionaries(
    {}, optional={
        "will_delay_interval": st.integers(0, 2**32 - 1), "message_expiry_interval": st.integers(0, 2**32 - 1),
        "content_type": TEXT, "user_properties": st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=3),
    },
)  # fmt: skip
PROPERTIES = st.fixed_dictionaries(
    {}, optional={
        "session_expiry_interval": st.integers(0, 2**32 - 1), "receive_maximum": st.integers(1, 65535),
        "maximum_packet_size": st.integers(1, 2**32 - 1), "topic_alias_maximum": st.integers(0, 65535),
        "user_properties": st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=3),
    },
)  # fmt: skip


@st.composite
def connects(draw: st.DrawFn) -> p.Connect:
    version = draw(st.sampled_from([3, 4, 5]))
    will = None
    if draw(st.booleans()):
        will = p.Will(
            draw(TOPICS), draw(st.binary(max_size=50)), draw(st.integers(0, 2)), draw(st.booleans()),
            Properties(draw(WILL_PROPERTIES) if version == 5 else {}),
        )  # fmt: skip
    clean = draw(st.booleans())
    client_id = draw(TEXT)
    if not client_id and not (version == 5 or (version == 4 and clean)):
        client_id = "c"
    username = draw(TEXT if version < 5 else st.none() | TEXT)
    return p.Connect(
        client_id, version, clean, draw(st.integers(0, 65535)), username, draw(st.binary(max_size=60)), will,
        Properties(draw(PROPERTIES) if version == 5 else {}),
    )  # fmt: skip


def in_pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [each for each in (*pieces, data) if each]


@given(connects(), st.binary(max_size=40), st.lists(st.integers(1, 30), max_size=20), TEXT)
def test_the_broker_gets_what_the_client_said_with_the_tokens_user_and_without_the_secret(
    connect: p.Connect, rest: bytes, sizes: list[int], user: str
) -> None:
    login, found, behind = Login(BYTES_MAX), None, b""
    for piece in in_pieces(encode(connect, connect.version) + rest, sizes):
        if found is None:
            found = login.receive(piece)
        else:
            behind += piece
    assert found == connect and login.rest + behind == rest
    assert secret_of(found) == (connect.password or b"").decode("utf-8", "replace")
    reader = FrameReader(version=connect.version)
    reader.receive(for_broker(found, user))
    (frame,) = reader.frames()
    said = decode_connect(frame.first_byte, frame.body)
    assert said == dataclasses.replace(connect, username=user or None, password=None)


def test_byte_by_byte() -> None:
    connect = p.Connect("c", 5, username="u", password=b"rumq_x")
    data = encode(connect, 5)
    login = Login(BYTES_MAX)
    assert [login.receive(data[at : at + 1]) for at in range(len(data) - 1)] == [None] * (len(data) - 1)
    assert login.receive(data[-1:]) == connect and login.rest == b""


def body(name: bytes, level: int, rest: bytes = b"\x02\x00\x3c\x00\x00\x01c") -> bytes:
    return write_frame(0x10, len(name).to_bytes(2, "big") + name + bytes([level]) + rest)


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"GET / HTTP/1.1\r\n", b""),
        (b"\xc0\x00", b""),
        (b"\x10\xff\xff\xff\xff\x01", b""),  # a remaining length of five bytes
        (b"\x10\xff\xff\x7f", b""),  # two megabytes to come
        (body(b"MQTT", 9), "v5 0x84"),
        (body(b"MQTT", 6), "v5 0x84"),
        (body(b"MQTT", 2), b"\x20\x02\x00\x01"),
        (body(b"MQTT", 4, b"\x03\x00\x3c\x00\x01c"), b""),  # a reserved flag
        (body(b"MQTT", 4, b"\x40\x00\x3c\x00\x01c\x00\x01p"), b""),  # a password without a user name
        (body(b"MQTT", 4, b"\x00\x00\x3c\x00\x00"), b"\x20\x02\x00\x02"),  # an empty client id
        (body(b"MQTT", 5, b"\x03\x00\x3c\x00\x00\x01c"), "v5 0x81"),
        (body(b"MQTT", 5, b"\x02\x00\x3c\x08\x15\x00\x05SCRAM\x00\x01c"), "v5 0x8C"),
        (body(b"MQTT", 5, b"\x02\x00\x3c"), "v5 0x81"),
    ],
    ids=repr,
)
def test_what_is_no_connect_is_refused_in_the_words_of_its_version(data: bytes, answer: bytes | str) -> None:
    with pytest.raises(LoginRefused) as caught:
        Login(BYTES_MAX).receive(data)
    said = caught.value.answer
    if isinstance(answer, bytes):
        assert said == answer
    else:
        connack = decode(said[0], said[2:], 5)
        assert isinstance(connack, p.Connack) and f"v5 0x{connack.reason:02X}" == answer


@given(st.binary(max_size=80))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        Login(BYTES_MAX).receive(b"\x10" + data)
    except LoginRefused:
        pass


def test_a_connect_beyond_the_limit_is_refused_before_it_is_there() -> None:
    login = Login(1_000)
    with pytest.raises(LoginRefused, match="limit is 1000"):
        login.receive(encode(p.Connect("c" * 2_000, 5), 5)[:20])


WILL = p.Will("t", b"gone")


@pytest.mark.parametrize(
    ("roles", "will", "reason"),
    [
        (("read",), None, None), (("publish",), None, None), (("publish",), WILL, None), (("read",), WILL, 0x87),
        (("administer",), None, 0x87), ((), None, 0x87),
    ],
)  # fmt: skip
def test_a_will_needs_the_role_publish_and_a_login_either_role(
    roles: tuple[str, ...], will: p.Will | None, reason: int | None
) -> None:
    token = Token("t", frozenset(roles))  # type: ignore[arg-type]
    for version, answer in ((5, None), (4, b"\x20\x02\x00\x05")):
        connect = p.Connect("c", version, username="u", password=b"x", will=will)
        if reason is None:
            check_roles(connect, token)
            continue
        with pytest.raises(LoginRefused) as caught:
            check_roles(connect, token)
        said = caught.value.answer
        assert answer is None or said == answer
        if version == 5:
            connack = decode(said[0], said[2:], 5)
            assert isinstance(connack, p.Connack) and connack.reason == Reason.NOT_AUTHORIZED
