"""Password hashes: ours, and those that mosquitto writes. RFC 9106, RFC 5802, RFC 7677."""

import base64
import hashlib

import pytest

from rumq.auth.credentials import hashes

SALT = b"sixteen bytes..."
KINDS = [hashes.argon2id, hashes.scram, hashes.pbkdf2_sha512]
# As mosquitto_passwd writes them with -H sha512-pbkdf2 and -H sha512; tests/cli has files of the tool itself.
MOSQUITTO = [
    hashes.pbkdf2_sha512(b"secret", SALT, 101),
    "$6$c2FsdHNhbHRzYWx0$" + base64.b64encode(hashlib.sha512(b"secret" + b"saltsaltsalt").digest()).decode(),
]


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
