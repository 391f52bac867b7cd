"""Tokens: what is taken, what is not, and that a key decides what it is good for."""

import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from rumq.auth.credentials.authenticator import outcome
from rumq.auth.credentials.tokens import Claims, TokenLogin, parse_keys
from rumq.auth.errors import Denied, SecretsError
from rumq.auth.identity import Credentials, Identity, Work

SECRET = "a secret of sixty-four bytes or more, as the longest algorithm wants"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
LONG_AGO, NEVER = 1_000_000_000, 4_000_000_000


def pem(key: Any) -> str:
    return str(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


def jwk(key: Any, name: str) -> dict[str, Any]:
    algorithm = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return json.loads(algorithm.to_jwk(key.public_key())) | {"kid": name}  # type: ignore[arg-type]


def said(tokens: TokenLogin, password: bytes, client_id: str = "c", username: str | None = None) -> Identity | None:
    steps = tokens.check(Credentials(client_id, username, password))
    try:
        step = next(steps)
    except StopIteration as end:
        result: Identity | None = end.value
        return result
    assert isinstance(step, Work)
    found = outcome(steps, step.run())
    assert isinstance(found, Identity)
    return found


def made(key: Any, algorithm: str, **claims: Any) -> bytes:
    headers = {"kid": claims.pop("kid")} if "kid" in claims else None
    return jwt.encode({"sub": "alice", "exp": NEVER} | claims, key, algorithm, headers=headers).encode()


@pytest.mark.parametrize(
    ("keys", "key", "algorithm"),
    [
        (SECRET, SECRET, "HS256"),
        (SECRET, SECRET, "HS512"),
        (pem(RSA_KEY), RSA_KEY, "RS256"),
        (pem(RSA_KEY), RSA_KEY, "PS384"),
        (pem(EC_KEY), EC_KEY, "ES256"),
        (pem(RSA_KEY) + pem(EC_KEY), EC_KEY, "ES256"),
        (json.dumps({"keys": [jwk(RSA_KEY, "r"), jwk(EC_KEY, "e")]}), EC_KEY, "ES256"),
        (json.dumps({"keys": [jwk(RSA_KEY, "r"), jwk(EC_KEY, "e")]}), RSA_KEY, "RS512"),
    ],
)
def test_a_good_token_says_who_it_is(keys: str, key: Any, algorithm: str) -> None:
    who = said(TokenLogin(parse_keys(keys, "keys")), made(key, algorithm, groups=["ops"]), username="whoever")
    assert who is not None
    assert (who.user, who.groups, who.method, who.expires_us) == (
        "alice",
        {"ops"},
        "token",
        NEVER * 1_000_000,
    )


def refusal(keys: str, token: bytes, claims: Claims = Claims(), client_id: str = "c") -> str:  # noqa: B008
    with pytest.raises(Denied) as denied:
        said(TokenLogin(parse_keys(keys, "keys"), claims), token, client_id)
    assert denied.value.reason == 0x87
    assert token.decode() not in denied.value.why
    return denied.value.why


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (made(SECRET, "HS256", exp=LONG_AGO), "expired"),
        (made("another secret, that is long enough too", "HS256"), "key"),
        (made(SECRET, "HS256", nbf=NEVER), "ImmatureSignature"),
        (made(SECRET, "HS256", sub=""), "sub"),
        (b"eyJ.eyJ.sig", "malformed"),
        (jwt.encode({"sub": "alice"}, None, "none").encode(), "key"),
    ],
)
def test_a_bad_token_is_refused(token: bytes, words: str) -> None:
    assert words in refusal(SECRET, token)


def test_a_public_key_is_no_secret() -> None:
    """The oldest trick: a token signed with HMAC, the public key taken for the secret."""
    head, body, _ = made(RSA_KEY, "RS256").split(b".")
    import base64
    import hmac

    forged = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=") + b"." + body
    sign = hmac.digest(pem(RSA_KEY).encode(), forged, "sha256")
    token = forged + b"." + base64.urlsafe_b64encode(sign).rstrip(b"=")
    assert head != forged.split(b".")[0]
    assert "key" in refusal(pem(RSA_KEY), token)


def test_claims_that_are_asked_for() -> None:
    claims = Claims(issuer="plant", audience="rumq", user="name", client_id="cid")
    good = {"iss": "plant", "aud": "rumq", "name": "bob", "cid": "pump-7"}
    who = said(TokenLogin(parse_keys(SECRET, "k"), claims), made(SECRET, "HS256", **good), "pump-7")
    assert who is not None
    assert (who.user, who.client_id) == ("bob", "pump-7")
    for name in ("iss", "aud", "name", "cid"):
        refusal(
            SECRET,
            made(SECRET, "HS256", **{key: value for key, value in good.items() if key != name}),
            claims,
        )
    refusal(SECRET, made(SECRET, "HS256", **good | {"iss": "other"}), claims)


def test_what_is_no_token_is_left_to_the_next() -> None:
    assert said(TokenLogin(parse_keys(SECRET, "k")), b"a.password.with.dots") is None


@pytest.mark.parametrize("text", ["short", "{}", '{"keys": [{"kty": "no"}]}', "-----BEGIN nonsense", '{"keys": 3}'])
def test_keys_that_cannot_be_used_are_refused(text: str) -> None:
    with pytest.raises(SecretsError) as refused:
        parse_keys(text, "keys")
    assert "short" not in str(refused.value)
