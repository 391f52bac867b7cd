"""Users, hashes and the order of the ways in, without a socket: steps go in and out by hand."""

import base64
import hashlib
from pathlib import Path

import pytest

from rumq.auth import hashes
from rumq.auth.authenticator import Authenticator, outcome
from rumq.auth.certificates import Certificates
from rumq.auth.errors import Denied, SecretsError
from rumq.auth.fair_queue import BACKOFF_MAX, FairQueue
from rumq.auth.files import read_secrets, replace
from rumq.auth.identity import Certificate, Credentials, Identity, Work
from rumq.auth.login_backoff import LoginBackoff
from rumq.auth.passwords import Passwords, parse, written
from rumq.auth.verification_cache import VerificationCache

SALT = b"sixteen bytes..."
KINDS = [hashes.argon2id, hashes.scram, hashes.pbkdf2_sha512]
# As mosquitto_passwd writes them with -H sha512-pbkdf2 and -H sha512; tests/cli has files of the tool itself.
MOSQUITTO = [
    hashes.pbkdf2_sha512(b"secret", SALT, 101),
    "$6$c2FsdHNhbHRzYWx0$" + base64.b64encode(hashlib.sha512(b"secret" + b"saltsaltsalt").digest()).decode(),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_hash_knows_its_password_and_no_other(kind: object) -> None:
    made = kind(b"secret", SALT)  # type: ignore[operator]
    assert hashes.problem_of(made) == ""
    assert hashes.verify(made, b"secret")
    assert not hashes.verify(made, b"Secret")
    assert not hashes.verify(made, b"")


@pytest.mark.parametrize("text", MOSQUITTO)
def test_hashes_of_mosquitto_are_read(text: str) -> None:
    assert hashes.problem_of(text) == ""
    assert hashes.verify(text, b"secret")
    assert not hashes.verify(text, b"secre")


@pytest.mark.parametrize(
    "text",
    [
        "secret", "", "$1$abc$def", "$7$0$c2FsdA==$" + "A" * 88, "$7$101$c2FsdA==$AAAA", "$argon2id$v=19$m=1",
        "$argon2id$v=19$m=99999999,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2g", "SCRAM-SHA-256$1:$:", "$7$x$y",
    ],
)  # fmt: skip
def test_what_is_no_hash_is_refused_before_it_is_used(text: str) -> None:
    assert hashes.problem_of(text)


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


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "users"
    replace(str(path), "alice:x\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_secrets(str(path)) == "alice:x\n"
    path.chmod(0o644)
    with pytest.raises(SecretsError, match="chmod"):
        read_secrets(str(path))


def test_wrong_answers_are_held_back_longer_each_time_and_forgotten() -> None:
    guesses = LoginBackoff(0.25, 8.0)
    waits = [guesses.failed("a", 0.0) for _ in range(8)]
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert guesses.failed("b", 0.0) == 0.25
    assert guesses.failed("a", 3600.0) < 0.26


def test_each_address_has_its_turn() -> None:
    queue: FairQueue[str] = FairQueue(1)
    for item in ("a1", "a2", "a3"):
        queue.put("a", item)
    queue.put("b", "b1")
    order = []
    while (item := queue.maybe_next()) is not None:
        order.append(item)
        queue.finished()
    assert order == ["a1", "b1", "a2", "a3"]


def test_an_address_that_guesses_waits_for_its_answers() -> None:
    queue: FairQueue[str] = FairQueue(1)
    for _ in range(BACKOFF_MAX):
        queue.begin_backoff("a")
    queue.put("a", "a1")
    assert queue.maybe_next() is None
    queue.end_backoff("a")
    assert queue.maybe_next() == "a1"
