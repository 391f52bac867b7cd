"""Password hashes: made as argon2id or SCRAM-SHA-256, read as mosquitto writes them too. RFC 9106, RFC 5802, RFC 7677.

    $argon2id$v=19$m=19456,t=2,p=1$salt$hash      rumqd passwd
    SCRAM-SHA-256$iterations:salt$stored:server   rumqd passwd --scram, what SCRAM needs of a password (as PostgreSQL)
    $7$iterations$salt$hash                       mosquitto 1.6 and later, PBKDF2 with SHA-512
    $6$salt$hash                                  mosquitto before, one round of SHA-512 over password and salt

A check takes tens of milliseconds on purpose: never run it on the event loop. Randomness is passed in as a salt."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final, NamedTuple

from argon2 import Parameters, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import Type, hash_secret, verify_secret

SALT_BYTES: Final = 16
# RFC 9106 leaves the choice open: 19 MiB and two passes, 20 ms of one core, is the minimum of OWASP.
TIME_COST, MEMORY_KIB, LANES, HASH_BYTES = 2, 19 * 1024, 1, 32
# A file may come from elsewhere: its costs must not stop the broker.
MEMORY_KIB_MAX, TIME_COST_MAX, ITERATIONS_MAX = 1 << 20, 64, 10_000_000
SCRAM: Final = "SCRAM-SHA-256"
SCRAM_ITERATIONS: Final = 15_000  # at least 4096 (RFC 7677, 4); paid by the client at each connection, too
KINDS: Final = "$argon2id$, SCRAM-SHA-256$, or mosquitto's $7$ and $6$"


class ScramKeys(NamedTuple):
    """The server's keys of a password for SCRAM. RFC 5802, 3."""

    iterations: int
    salt: bytes
    stored: bytes
    server: bytes


def argon2id(password: bytes, salt: bytes) -> str:
    """A new hash of `password`; salt: 16 random bytes. Cost: about 20 ms"""
    return hash_secret(
        password, salt, time_cost=TIME_COST, memory_cost=MEMORY_KIB, parallelism=LANES, hash_len=HASH_BYTES,
        type=Type.ID,
    ).decode()  # fmt: skip


def scram_keys(password: bytes, salt: bytes, iterations: int) -> ScramKeys:
    salted = hashlib.pbkdf2_hmac("sha256", password, salt, iterations)
    client = hmac.digest(salted, b"Client Key", "sha256")
    return ScramKeys(iterations, salt, hashlib.sha256(client).digest(), hmac.digest(salted, b"Server Key", "sha256"))


def scram(password: bytes, salt: bytes, iterations: int = SCRAM_ITERATIONS) -> str:
    keys = scram_keys(password, salt, iterations)
    salt64, stored, server = (base64.b64encode(part).decode() for part in keys[1:])
    return f"{SCRAM}${iterations}:{salt64}${stored}:{server}"


def pbkdf2_sha512(password: bytes, salt: bytes, iterations: int = 101) -> str:
    """As mosquitto_passwd writes it."""
    made = hashlib.pbkdf2_hmac("sha512", password, salt, iterations)
    return f"$7${iterations}${base64.b64encode(salt).decode()}${base64.b64encode(made).decode()}"


def problem_of(text: str) -> str:
    """Why `text` is no supported hash; empty if it is one. Cheap: nothing is hashed"""
    try:
        if text.startswith("$argon2id$"):
            return argon2_problem(extract_parameters(text))
        if text.startswith(SCRAM + "$"):
            parse_scram(text)
            return ""
        if text.startswith(("$7$", "$6$")):
            parse_mosquitto(text)
            return ""
    except (InvalidHashError, ValueError):
        return "the hash is damaged"
    return f"no hash that is known here, which are {KINDS}"


def argon2_problem(found: Parameters) -> str:
    if found.memory_cost > MEMORY_KIB_MAX or found.time_cost > TIME_COST_MAX:
        return f"the hash asks for more than {MEMORY_KIB_MAX} KiB or {TIME_COST_MAX} passes"
    return ""


def cost_of(text: str) -> str:
    """The kind of a hash and its parameters: hashes with equal ones take equally long to check."""
    kind = text.removeprefix("$").partition("$")[0]
    parts = {"argon2id": 4, SCRAM: 2, "7": 3}.get(kind, 2)
    return "$".join(text.split("$")[:parts]).partition(":")[0]


def verify(text: str, password: bytes) -> bool:
    """Whether `password` is the one that was hashed. Slow; False for a damaged hash"""
    try:
        if text.startswith("$argon2id$"):
            return verify_secret(text.encode(), password, Type.ID)
        if text.startswith(SCRAM + "$"):
            keys = parse_scram(text)
            return hmac.compare_digest(scram_keys(password, keys.salt, keys.iterations).stored, keys.stored)
        iterations, salt, wanted = parse_mosquitto(text)
    except (VerificationError, InvalidHashError, ValueError):
        return False
    if iterations:
        made = hashlib.pbkdf2_hmac("sha512", password, salt, iterations, len(wanted))
    else:
        made = hashlib.sha512(password + salt).digest()
    return hmac.compare_digest(made, wanted)


def parse_scram(text: str) -> ScramKeys:
    """raises: ValueError"""
    _, first, second = text.split("$")
    count, salt = first.split(":")
    stored, server = second.split(":")
    keys = ScramKeys(whole(count), decoded(salt), decoded(stored), decoded(server))
    if len(keys.stored) != 32 or len(keys.server) != 32 or not keys.salt:
        raise ValueError("a key of the wrong length")
    return keys


def parse_mosquitto(text: str) -> tuple[int, bytes, bytes]:
    """(iterations, or 0 for the old form; salt; hash). raises: ValueError"""
    kind, *rest = text.removeprefix("$").split("$")
    iterations = whole(rest.pop(0)) if kind == "7" else 0
    salt, wanted = (decoded(part) for part in rest)
    if kind not in ("6", "7") or len(wanted) != 64:
        raise ValueError("a hash of the wrong length")
    return iterations, salt, wanted


def whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= ITERATIONS_MAX):
        raise ValueError("a number of iterations that is not allowed")
    return int(text)


def decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as fault:
        raise ValueError(str(fault)) from None
