"""SCRAM-SHA-256, the client's side: the example of RFC 7677, and brokers that lie.

With ours: tests/interop/test_own_client.py."""

import base64

import pytest
import trio

from rumq.client import LoginFailed, Refused, ScramLogin, connect_over
from rumq.mqtt.packets import Auth, Connack
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.client.fake_broker import FakeBroker, simulated

# RFC 7677, 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def example() -> ScramLogin:
    return ScramLogin("user", "pencil", lambda size: base64.b64decode(NONCE + "=" * (-len(NONCE) % 4)))


def test_the_example_of_the_standard() -> None:
    login = example()
    assert login.first() == b"n,,n=user,r=" + NONCE.encode()
    assert login.answer(SERVER_FIRST) == CLIENT_FINAL
    login.finish(SERVER_FINAL)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (SERVER_FIRST.replace(b"i=4096", b"i=4095"), "iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=2000000000"), "iterations"),
        (SERVER_FIRST.replace(b"r=rO", b"r=xO"), "another login"),
        (b"r=" + NONCE.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "another login"),
        (b"", "malformed"), (b"\xff", "malformed"), (b"r=1,s=2", "malformed"), (b"r=1,s=!,i=x", "malformed"),
    ],
)  # fmt: skip
def test_a_challenge_that_is_none_is_refused(data: bytes, why: str) -> None:
    login = example()
    login.first()
    with pytest.raises(LoginFailed, match=why):
        login.answer(data)


@pytest.mark.parametrize("final", [b"", b"v=", b"v=AAAA", SERVER_FINAL[:-1] + b"5"])
def test_a_broker_that_does_not_know_the_password_is_left(final: bytes) -> None:
    login = example()
    login.first()
    login.answer(SERVER_FIRST)
    with pytest.raises(LoginFailed, match="another one"):
        login.finish(final)


def test_a_broker_that_skips_the_challenge_is_left() -> None:
    login = example()
    login.first()
    with pytest.raises(LoginFailed, match="another one"):
        login.finish(b"v=")


@simulated
async def test_nobody_logs_in_who_is_not_asked_to() -> None:
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def serve() -> None:
            peer = await broker._arrived.receive()
            await peer.receive()
            await peer.send(Auth(Reason.CONTINUE_AUTHENTICATION, Properties(authentication_method="X")))

        with pytest.raises(Exception, match="AUTH that answers nothing"):
            async with connect_over(broker.open_stream):
                pass


@simulated
async def test_a_login_that_the_broker_refuses_is_a_refusal() -> None:
    broker = FakeBroker()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.accept, Connack(reason=Reason.NOT_AUTHORIZED))
        with pytest.raises(Refused, match="0x87"):
            async with connect_over(broker.open_stream, login=ScramLogin("ann", "secret")):
                pass
