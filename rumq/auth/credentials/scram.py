"""SCRAM-SHA-256, the server's side. RFC 5802, RFC 7677; in MQTT 5.0, 4.12 (non-normative example).

The password is never sent, and the stored keys cannot be used to log in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from functools import partial

from rumq.auth.credentials.decoy_hashes import DecoyHashes
from rumq.auth.credentials.hashes import SCRAM, ScramKeys, parse_scram, scram_keys
from rumq.auth.errors import BAD_USER_NAME_OR_PASSWORD, NOT_AUTHORIZED, Denied
from rumq.auth.identity import Challenge, Credentials, Identity, Steps, Work

NONCE_BYTES = 18
MESSAGE_BYTES_MAX = 4096


class Scram:
    """users: of a password file, those with a SCRAM hash"""

    name = SCRAM

    def __init__(
        self,
        users: Mapping[str, str],
        secret: bytes,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        """secret: of the decoy keys of unknown users; the same in all shards and across restarts"""
        self._keys = {user: parse_scram(hashed) for user, hashed in users.items() if hashed.startswith(SCRAM + "$")}
        self._random_bytes = random_bytes
        self._secret = secret
        self._decoys = DecoyHashes(self._keys.values(), lambda keys: (keys.iterations, len(keys.salt)), secret)
        self._empty: dict[str, bool] = {}  # user -> whether its password is empty

    def __bool__(self) -> bool:
        return bool(self._keys)

    def check(self, credentials: Credentials) -> Steps:
        header, bare = first_of(credentials.data)
        user, client_nonce = name_and_nonce(bare)
        known = self._keys.get(user)
        keys = known or self._decoy_keys(user)
        nonce = client_nonce + base64.b64encode(self._random_bytes(NONCE_BYTES)).decode()
        offer = f"r={nonce},s={base64.b64encode(keys.salt).decode()},i={keys.iterations}"
        answer = yield Challenge(offer.encode())
        final, proof = final_of(answer, header, nonce)
        signed = f"{bare},{offer},{final}".encode()
        if not proves(keys, signed, proof) or known is None:
            raise Denied(BAD_USER_NAME_OR_PASSWORD, f"wrong proof for user {user!r}", guess=True)
        if user not in self._empty:
            self._empty[user] = yield Work("hash", partial(is_empty_password, known))
        if self._empty[user]:
            raise Denied(BAD_USER_NAME_OR_PASSWORD, f"the password of user {user!r} is empty", guess=True)
        signature = base64.b64encode(hmac.digest(keys.server, signed, "sha256")).decode()
        return Identity(
            user, method=self.name, certificate=credentials.certificate, last_data=f"v={signature}".encode()
        )

    def _decoy_keys(self, user: str) -> ScramKeys:
        """For an unknown user: always the same, in the form of a known user's keys. RFC 5802, 9"""
        like: ScramKeys = self._decoys.hash_for(user)
        salt = hmac.digest(self._secret, b"salt of " + user.encode(), "sha512")[: len(like.salt)]
        return ScramKeys(like.iterations, salt, bytes(32), bytes(32))


def is_empty_password(keys: ScramKeys) -> bool:
    """Whether the keys are those of an empty password. As slow as a login."""
    return hmac.compare_digest(scram_keys(b"", keys.salt, keys.iterations).stored, keys.stored)


def malformed(why: str) -> Denied:
    return Denied(NOT_AUTHORIZED, f"{SCRAM}: {why}")


def text_of(data: object) -> str:
    if not isinstance(data, bytes) or len(data) > MESSAGE_BYTES_MAX:
        raise malformed("a message that is missing or too long")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise malformed("a message that is no UTF-8") from None


def first_of(data: object) -> tuple[str, str]:
    """(GS2 header, the rest) of the client's first message."""
    text = text_of(data)
    parts = text.split(",", 2)
    if len(parts) != 3 or parts[0] not in ("n", "y"):
        raise malformed("channel binding is not served here" if text.startswith("p=") else "a malformed beginning")
    if parts[1] and not parts[1].startswith("a="):
        raise malformed("a malformed beginning")
    if parts[1]:
        raise malformed("nobody acts for another here")
    return f"{parts[0]},{parts[1]},", parts[2]


def name_and_nonce(bare: str) -> tuple[str, str]:
    parts = bare.split(",")
    if len(parts) < 2 or not parts[0].startswith("n=") or not parts[1].startswith("r=") or len(parts[1]) < 3:
        raise malformed("no name or no nonce")  # `m=`, an extension that must be understood, comes first
    user = parts[0][2:].replace("=2C", ",").replace("=3D", "=")
    return user, parts[1][2:]


def final_of(data: object, header: str, nonce: str) -> tuple[str, bytes]:
    """(the message without its proof, the proof)."""
    final, mark, proof = text_of(data).rpartition(",p=")
    parts = final.split(",")
    if not mark or len(parts) < 2:
        raise malformed("a last message without proof")
    if parts[0] != f"c={base64.b64encode(header.encode()).decode()}":
        raise malformed("another channel than at first")
    if parts[1] != f"r={nonce}":
        raise malformed("another nonce than at first")
    try:
        return final, base64.b64decode(proof, validate=True)
    except ValueError:  # binascii.Error, and another for what is no ASCII
        raise malformed("a proof that is no base64") from None


def proves(keys: ScramKeys, signed: bytes, proof: bytes) -> bool:
    if len(proof) != 32:
        return False
    signature = hmac.digest(keys.stored, signed, "sha256")
    client = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    return hmac.compare_digest(hashlib.sha256(client).digest(), keys.stored)
