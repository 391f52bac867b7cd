"""Users, hashes and the order of the ways in, without a socket: steps go in and out by hand."""

import pytest

from rumq.auth.credentials import hashes
from rumq.auth.credentials.authenticator import Authenticator, outcome
from rumq.auth.credentials.certificates import Certificates
from rumq.auth.credentials.passwords import Passwords, parse, written
from rumq.auth.credentials.verification_cache import VerificationCache
from rumq.auth.errors import Denied, SecretsError
from rumq.auth.identity import Certificate, Credentials, Identity, Work

SALT = b"sixteen bytes..."


def authenticator(users: dict[str, str], *, anonymous: bool = False, seconds: float = 0.0) -> Authenticator:
    return Authenticator(
        [Certificates("common name"), Passwords(users, VerificationCache(seconds))], anonymous=anonymous
    )


def come_in(way: Authenticator, shown: Credentials) -> tuple[Identity, int]:
    """Who it is, and how many hashes that took."""
    steps, answer, works = way.authenticate(shown), None, 0
    while isinstance(step := outcome(steps, answer), Work):
        works += 1
        answer = step.run()
    assert isinstance(step, Identity)
    return step, works


USERS = {"alice": hashes.argon2id(b"wonder", SALT)}


def test_a_user_comes_in_with_the_password() -> None:
    who, works = come_in(authenticator(USERS), Credentials("c", "alice", b"wonder"))
    assert (who.user, who.method, works) == ("alice", "password", 1)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (Credentials("c", "alice", b"wrong"), 0x86),
        (Credentials("c", "nobody", b"wonder"), 0x86),
        (Credentials("c", "alice"), 0x86),
        (Credentials("c"), 0x87),
        (Credentials("c", None, b"wonder"), 0x86),
        (Credentials("c", method="SCRAM-SHA-256"), 0x8C),
    ],
)
def test_nobody_else_does(shown: Credentials, reason: int) -> None:
    with pytest.raises(Denied) as denied:
        come_in(authenticator(USERS), shown)
    assert denied.value.reason == reason
    assert "wrong" not in str(denied.value).replace("wrong password", "")
    assert "wonder" not in denied.value.why


def test_an_unknown_user_costs_as_much_as_a_known_one() -> None:
    steps = authenticator(USERS).authenticate(Credentials("c", "nobody", b"x"))
    assert isinstance(outcome(steps), Work)


def test_anonymous_clients_come_in_where_they_may() -> None:
    who, works = come_in(authenticator(USERS, anonymous=True), Credentials("c"))
    assert (who.user, who.method, works) == (None, "anonymous", 0)


def test_a_password_that_was_right_is_remembered_until_its_time_is_over() -> None:
    way = authenticator(USERS, seconds=10.0)
    assert come_in(way, Credentials("c", "alice", b"wonder", now=0.0))[1] == 1
    assert come_in(way, Credentials("c", "alice", b"wonder", now=9.0))[1] == 0
    with pytest.raises(Denied):
        come_in(way, Credentials("c", "alice", b"other", now=9.0))
    assert come_in(way, Credentials("c", "alice", b"wonder", now=10.0))[1] == 1


def test_a_certificate_says_who_it_is() -> None:
    shown = Credentials("c", "alice", b"wrong", Certificate("pump-7", "CN=pump-7,O=Plant"))
    assert come_in(authenticator(USERS), shown)[0].user == "pump-7"


def test_secrets_are_not_in_what_is_printed() -> None:
    assert "wonder" not in repr(Credentials("c", "alice", b"wonder", data=b"wonder"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("alice", 1),
        (f"a:{USERS['alice']}\na:{USERS['alice']}", 2),
        ("#\n\nbob:plain", 3),
        (" a:x", 1),
        (":x", 1),
    ],
)
def test_a_password_file_that_cannot_be_taken_says_where(text: str, line: int) -> None:
    with pytest.raises(SecretsError) as refused:
        parse(text, "users")
    assert refused.value.line == line
    assert "plain" not in str(refused.value).replace("a plain password", "")


def test_a_password_file_is_read_as_it_was_written() -> None:
    assert parse(written(USERS) + "# comment\r\n", "users") == USERS
