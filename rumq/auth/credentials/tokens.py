"""JSON Web Tokens as passwords. RFC 7519. The key decides which algorithms are valid for it, never the token."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jwt

from rumq.auth.errors import NOT_AUTHORIZED, Denied, SecretsError
from rumq.auth.identity import Credentials, Identity, Steps, Work

RS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ES = ("ES256", "ES384", "ES512")
ALGORITHMS = {"oct": ("HS256", "HS384", "HS512"), "RSA": RS, "EC": ES, "OKP": ("EdDSA",)}
HS_BYTES_MIN = {"HS256": 32, "HS384": 48, "HS512": 64}  # RFC 7518, 3.2
LEEWAY_SECONDS = 5
SECONDS_MAX = 253_402_300_799  # the last second of the year 9999


class VerificationKey(NamedTuple):
    """identifier: "" where the set does not name it"""

    identifier: str
    key: Any
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims that a token must have, and those that name the client. Empty: not required"""

    issuer: str = ""
    audience: str = ""
    user: str = "sub"
    groups: str = "groups"
    client_id: str = ""
    expiry_required: bool = False


def parse_keys(text: str, path: str) -> list[VerificationKey]:
    """A set of keys (RFC 7517), public keys as PEM, or a secret of at least 32 bytes. raises: SecretsError"""
    stripped = text.strip()
    try:
        if stripped.startswith("{"):
            return [key_of(each, path) for each in json.loads(stripped).get("keys", [])] or no_keys(path)
        if "-----BEGIN" in stripped:
            return [pem_key(each) for each in pems(stripped)]
    except SecretsError:
        raise
    except Exception as fault:  # of several libraries, for any content of the file
        raise SecretsError(path, 0, f"holds no keys that can be used: {type(fault).__name__}") from None
    if len(stripped.encode()) < HS_BYTES_MIN["HS256"]:
        raise SecretsError(path, 0, f"a secret for tokens has at least {HS_BYTES_MIN['HS256']} bytes")
    algorithms = tuple(name for name, least in HS_BYTES_MIN.items() if len(stripped.encode()) >= least)
    return [VerificationKey("", stripped.encode(), algorithms)]


def no_keys(path: str) -> list[VerificationKey]:
    raise SecretsError(path, 0, "a set without keys")


def key_of(found: dict[str, Any], path: str) -> VerificationKey:
    kind = found.get("kty", "")
    algorithms = ALGORITHMS.get(kind)
    if algorithms is None:
        raise SecretsError(path, 0, f"a key of a kind that is not known, {kind!r}")
    wanted = found.get("alg")
    if wanted is not None:
        if wanted not in algorithms:
            raise SecretsError(path, 0, f"the key {found.get('kid', '')!r} cannot be used with {wanted!r}")
        algorithms = (wanted,)
    made = jwt.PyJWK.from_dict(found, algorithms[0])
    return VerificationKey(str(found.get("kid", "")), made.key, algorithms)


def pems(text: str) -> list[str]:
    """The keys of a file, one by one."""
    return ["-----BEGIN" + part for part in text.split("-----BEGIN")[1:]]


def pem_key(text: str) -> VerificationKey:
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if "CERTIFICATE" in text.split("\n", 1)[0]:
        from cryptography.x509 import load_pem_x509_certificate

        key: Any = load_pem_x509_certificate(text.encode()).public_key()
    else:
        key = load_pem_public_key(text.encode())
    if isinstance(key, rsa.RSAPublicKey):
        return VerificationKey("", key, RS)
    if isinstance(key, ec.EllipticCurvePublicKey):
        return VerificationKey("", key, ES)
    assert isinstance(key, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey)
    return VerificationKey("", key, ("EdDSA",))


class TokenLogin:
    """Passwords that are tokens; any other is left to the next method."""

    name = "token"

    def __init__(self, keys: list[VerificationKey], claims: Claims = Claims()) -> None:
        self._keys, self._claims = keys, claims

    def check(self, credentials: Credentials) -> Steps:
        token = credentials.password
        if token is None or token.count(b".") != 2 or not token.startswith(b"eyJ"):
            return None
        said = yield Work("hash", partial(self._verified, token))
        if isinstance(said, str):
            raise Denied(NOT_AUTHORIZED, f"a token that is not taken: {said}", guess=True)
        return self._identity(said, credentials)

    def _verified(self, token: bytes) -> Mapping[str, Any] | str:
        """The claims of a token, or why it is refused."""
        try:
            head = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            return "malformed"
        algorithm, wanted = head.get("alg"), head.get("kid")
        why = "signed with a key that is not known"
        for key in self._keys:
            if algorithm not in key.algorithms or (wanted and key.identifier and wanted != key.identifier):
                continue
            try:
                claims: dict[str, Any] = jwt.decode(
                    token, key.key, algorithms=[algorithm], leeway=LEEWAY_SECONDS,
                    audience=self._claims.audience or None, issuer=self._claims.issuer or None,
                    options={
                        "verify_aud": bool(self._claims.audience),
                        "require": ["exp"] if self._claims.expiry_required else [],
                    },
                )  # fmt: skip
            except jwt.InvalidSignatureError:
                continue
            except jwt.ExpiredSignatureError:
                return "expired"
            except jwt.MissingRequiredClaimError as fault:
                return f"without the claim {fault.claim!r}"
            except jwt.PyJWTError as fault:
                return type(fault).__name__.removesuffix("Error")
            except (
                ArithmeticError,
                RecursionError,
                TypeError,
                ValueError,
            ):  # for example of an invalid time
                return "a claim that cannot be read"
            return claims
        return why

    def _identity(self, claims: Mapping[str, object], credentials: Credentials) -> Identity:
        names = self._claims
        user = claims.get(names.user)
        if not isinstance(user, str) or not user:
            raise Denied(NOT_AUTHORIZED, f"a token without the claim {names.user!r}")
        groups = claims.get(names.groups)
        if groups is None:
            groups = ()
        if isinstance(groups, str):
            groups = groups.split()
        if not isinstance(groups, list | tuple):
            raise Denied(NOT_AUTHORIZED, f"a token whose claim {names.groups!r} is no list")
        client_id = claims.get(names.client_id) if names.client_id else None
        if names.client_id and not isinstance(client_id, str):
            raise Denied(NOT_AUTHORIZED, f"a token without the claim {names.client_id!r}")
        return Identity(
            user, frozenset(str(each) for each in groups), self.name, credentials.certificate,
            expiry_of(claims.get("exp")), client_id if isinstance(client_id, str) else None,
        )  # fmt: skip


def expiry_of(claim: object) -> int | None:
    """µs since 1970 of `exp`; None for never. raises: Denied for an invalid time"""
    if claim is None:
        return None
    try:
        seconds = float(claim)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        seconds = math.nan
    if not 0 <= seconds <= SECONDS_MAX:
        raise Denied(NOT_AUTHORIZED, "a token whose claim 'exp' is no time")
    return int(seconds * 1_000_000)
