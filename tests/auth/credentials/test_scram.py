"""SCRAM-SHA-256: the exchange of RFC 7677, 3, byte by byte, and everything a client can do wrong."""

import base64
import hashlib
import hmac

import pytest

from rumq.auth.credentials import hashes
from rumq.auth.credentials.authenticator import outcome
from rumq.auth.credentials.scram import Scram
from rumq.auth.errors import Denied
from rumq.auth.identity import Challenge, Credentials, Identity, Steps, Work

# RFC 7677, 3
PASSWORD, SALT, ITERATIONS = b"pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096
SECRET = bytes(32)
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r=rOprNGfwEbeRWgbNEkqO{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
CLIENT_FINAL = (f"c=biws,r=rOprNGfwEbeRWgbNEkqO{SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=").encode()
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def scram() -> Scram:
    return Scram({"user": hashes.scram(PASSWORD, SALT, ITERATIONS), "other": hashes.pbkdf2_sha512(b"x", SALT)}, SECRET)


def ended(steps: Steps, answer: bytes) -> object:
    """What comes of the client's last message, with the work that it takes done."""
    step = outcome(steps, answer)
    return outcome(steps, step.run()) if isinstance(step, Work) else step


class Talk:
    """One exchange; the server's nonce is whatever it is, so the client computes as RFC 5802 says."""

    def __init__(self, first: bytes = CLIENT_FIRST) -> None:
        self.first = first
        self.steps = scram().check(Credentials("c", method="SCRAM-SHA-256", data=first))

    def challenge(self) -> str:
        step = outcome(self.steps)
        assert isinstance(step, Challenge)
        return step.data.decode()

    def answer(self, offer: str, password: bytes = PASSWORD, channel: str = "biws") -> bytes:
        fields = dict(part.split("=", 1) for part in offer.split(","))
        keys = hashes.scram_keys(password, base64.b64decode(fields["s"]), int(fields["i"]))
        salted = hashlib.pbkdf2_hmac("sha256", password, base64.b64decode(fields["s"]), int(fields["i"]))
        bare = self.first.decode().split(",", 2)[2]
        final = f"c={channel},r={fields['r']}"
        signature = hmac.digest(keys.stored, f"{bare},{offer},{final}".encode(), "sha256")
        client = hmac.digest(salted, b"Client Key", "sha256")
        proof = bytes(a ^ b for a, b in zip(client, signature, strict=True))
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def end(self, answer: bytes) -> Identity:
        who = ended(self.steps, answer)
        assert isinstance(who, Identity)
        return who


def test_the_exchange_of_the_rfc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rumq.auth.credentials.scram.base64.b64encode", only_the_nonce(base64.b64encode))
    users = {"user": hashes.scram(PASSWORD, SALT, ITERATIONS)}
    steps = Scram(users, SECRET, lambda n: b"chance"[:n].ljust(n)).check(
        Credentials("c", method="SCRAM-SHA-256", data=CLIENT_FIRST)
    )
    step = outcome(steps)
    assert step == Challenge(SERVER_FIRST)
    who = ended(steps, CLIENT_FINAL)
    assert isinstance(who, Identity)
    assert (who.user, who.last_data) == ("user", SERVER_FINAL)


def only_the_nonce(plain):  # type: ignore[no-untyped-def]
    """The RFC's nonce is no base64: put it where ours is encoded."""
    return lambda data: SERVER_NONCE.encode() if data.startswith(b"chance") else plain(data)


def test_who_knows_the_password_comes_in_and_sees_that_the_server_knows_it_too() -> None:
    talk = Talk()
    assert talk.end(talk.answer(talk.challenge())).user == "user"


@pytest.mark.parametrize("password", [b"Pencil", b""])
def test_a_wrong_password_is_refused(password: bytes) -> None:
    talk = Talk()
    with pytest.raises(Denied) as denied:
        talk.end(talk.answer(talk.challenge(), password))
    assert denied.value.reason == 0x86


@pytest.mark.parametrize("name", [b"nobody", b"other"])
def test_an_unknown_user_is_asked_as_a_known_one_is_and_refused(name: bytes) -> None:
    talk = Talk(b"n,,n=" + name + b",r=abc")
    offer = talk.challenge()
    assert Talk(b"n,,n=" + name + b",r=abc").challenge().split(",")[2] == offer.split(",")[2]
    with pytest.raises(Denied):
        talk.end(talk.answer(offer))


@pytest.mark.parametrize(
    "first",
    [
        b"", b"n", b"p=tls-unique,,n=user,r=a", b"n,a=root,n=user,r=a", b"x,,n=user,r=a", b"n,,r=a", b"n,,n=user",
        b"n,,n=user,r=", b"\xff,,", b"n,,m=ext,n=user,r=a", b"n,," + b"x" * 5000,
    ],
)  # fmt: skip
def test_a_malformed_beginning_is_refused(first: bytes) -> None:
    with pytest.raises(Denied):
        outcome(scram().check(Credentials("c", method="SCRAM-SHA-256", data=first)))


@pytest.mark.parametrize("spoil", ["nonce", "channel", "proof", "none", "base64", "empty"])
def test_a_malformed_end_is_refused(spoil: str) -> None:
    talk = Talk()
    good = talk.answer(talk.challenge(), channel="eSws" if spoil == "channel" else "biws")
    bad = {
        "nonce": good.replace(b"r=", b"r=x"), "channel": good, "proof": good[:-5] + b"AAAA=",
        "none": good.rpartition(b",p=")[0], "base64": good[:-3] + b"!!!", "empty": b"",
    }[spoil]  # fmt: skip
    with pytest.raises(Denied):
        talk.end(bad)
