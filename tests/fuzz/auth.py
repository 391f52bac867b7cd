"""Who comes in: SCRAM and tokens of clients, and the files of users, keys and rules that an operator may have written.

A client is let in or `Denied`, a file is taken or refused with `SecretsError`: nothing else, and nobody comes in who
was not to."""

import base64
import hashlib
import hmac
import json
from collections import Counter
from functools import partial
from random import Random
from typing import Any

import jwt

from rumq.auth import rules
from rumq.auth.credentials import hashes, passwords
from rumq.auth.credentials.authenticator import outcome
from rumq.auth.credentials.scram import Scram
from rumq.auth.credentials.tokens import Claims, TokenLogin, parse_keys
from rumq.auth.errors import Denied, SecretsError
from rumq.auth.identity import Challenge, Credentials, Identity, Work
from rumq.net.certificate import BadDer, names, rfc2253
from tests.fuzz.campaign import Target, Wrong
from tests.fuzz.kernels.mutate import Mutator

PASSWORD, SALT = b"pencil", bytes(range(16))
USERS = {"user": hashes.scram(PASSWORD, SALT, 4096), "ü,=": hashes.scram(b"other", SALT, 4096)}
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
FIRSTS = [
    FIRST,
    b"y,,n==C3,r=abc",
    "n,,n=ü=2C=3D,r=abc".encode(),
    b"n,a=x,n=user,r=abc",
    b"p=tls-unique,,n=user,r=a",
]
SECRET = b"a secret of sixty-four bytes or more, as the longest algorithm wants"
NEVER = 4_000_000_000
CLAIMS = [
    {"sub": "alice", "exp": NEVER}, {"sub": "alice", "groups": ["a", "b"], "exp": NEVER, "iat": 1, "nbf": 2},
    {"sub": "alice", "groups": "a b", "aud": ["x", "rumq"], "iss": "plant", "exp": 4.5e9}, {"sub": 5},
    {"sub": "carol", "groups": 7},
    {"sub": "bob", "groups": {"a": None}, "client_id": "c", "exp": 1e300, "nbf": -1e300, "jti": "x"},
    {"sub": "bob", "groups": [1, None, ["x"]], "exp": "4000000000"},
]  # fmt: skip
HEADS = [
    {"alg": "HS256"},
    {"alg": "HS512", "kid": "a", "typ": "JWT"},
    {"alg": "none"},
    {"alg": ["HS256"]},
    {"alg": None},
]
DEEP = b'{"sub":' + b"[" * 9000
PEM = (
    b"-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9\n"
    b"q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==\n-----END PUBLIC KEY-----\n"
)
JWKS = json.dumps({"keys": [
    {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET).decode().rstrip("="), "kid": "a", "alg": "HS256"},
    {"kty": "EC", "crv": "P-256", "x": "EVs_o5-uQbTjL3chynL4wXgUg2R9q9UU8I5mEovUf84",
     "y": "kGe5DgSIycKp8w9aJmoHhB1sB3QTugfnRWm5nU_TzsY", "kid": "b"},
]}).encode()  # fmt: skip
PASSWORD_FILES = [
    b"".join(f"{user}:{hashed}\n".encode() for user, hashed in USERS.items()),
    ("# x\n\nbob:" + hashes.pbkdf2_sha512(b"x", SALT)).encode(),
    b"ann:$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2E$" + b"A" * 43 + b"\n",
    b"old:$6$AAAA$" + base64.b64encode(bytes(64)) + b"\r\nx:plain\n",
]
RULE_FILES = [
    b'forbidden_subscriptions = "grant"\n[groups]\na = ["anna", "ben"]\n[[rule]]\ngroups = ["a"]\nallow = ["publish",'
    b'"replay"]\ntopics = ["plant/#", "d/%c/+"]\n[[rule]]\nanonymous = true\ndeny = ["retain"]\ntopics = ["%u/%%"]\n',
]


class Auth(Target):
    name = "auth"
    inputs = 300

    def __init__(self) -> None:
        super().__init__()
        self._scram = Scram(USERS, bytes(32), bytes)
        self._finals = [self._final(first) for first in FIRSTS[:3]] + [b"c=biws,r=x,p=AAAA", b",p="]
        self._finals.append(self._finals[0].rpartition(b"p=")[0] + b"p=\xc3\xa9")
        tokens = [jwt.encode(claims, SECRET, "HS256", headers={"kid": "a"}).encode() for claims in CLAIMS[:3]]
        self._tokens = [
            TokenLogin(parse_keys(SECRET.decode(), "keys")),
            TokenLogin(parse_keys(JWKS.decode(), "keys"), Claims("plant", "rumq", "sub", "groups", "client_id")),
        ]
        self._firsts = Mutator(FIRSTS, False)
        self._lasts = Mutator(self._finals, False)
        self._made = Mutator(
            [
                *tokens,
                b"eyJ.eyJ.sig",
                signed(b'{"alg":"HS256"}', DEEP),
                signed(b'{"alg":' + b"[" * 9000, b""),
            ],
            False,
        )
        self._claims = Mutator([json.dumps(claims).encode() for claims in CLAIMS], False)
        self._heads = Mutator([json.dumps(head).encode() for head in HEADS], False)
        self._certificates = Mutator([der()], False)
        self._files = [
            (Mutator([SECRET, PEM, JWKS], False), parse_keys), (Mutator(PASSWORD_FILES, False), passwords.parse),
            (Mutator(RULE_FILES, False), rules.parse),
        ]  # fmt: skip
        self._kinds = [self._in_by_scram, self._in_by_token, self._in_by_claims, self._look_at_certificate]
        self._kinds += [partial(self._read, *file) for file in self._files]

    def _final(self, first: bytes) -> bytes:
        """What a client with the right password says, to our server with a nonce that is known."""
        steps = self._scram.check(Credentials("c", method="SCRAM-SHA-256", data=first))
        step = outcome(steps)
        assert isinstance(step, Challenge)
        offer = step.data.decode()
        fields = dict(part.split("=", 1) for part in offer.split(","))
        keys = hashes.scram_keys(PASSWORD, SALT, int(fields["i"]))
        salted = hashlib.pbkdf2_hmac("sha256", PASSWORD, SALT, int(fields["i"]))
        final = f"c=biws,r={fields['r']}"
        signature = hmac.digest(keys.stored, f"{first.decode()[3:]},{offer},{final}".encode(), "sha256")
        client = hmac.digest(salted, b"Client Key", "sha256")
        proof = bytes(a ^ b for a, b in zip(client, signature, strict=True))
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def run(self, seed: int) -> Counter[str]:
        random = Random(seed)
        self.counts: Counter[str] = Counter()
        random.choice(self._kinds)(random)
        return self.counts

    def _in_by_scram(self, random: Random) -> None:
        firsts = self._firsts.inputs(self.inputs, random.getrandbits(64), 1)
        lasts = self._lasts.inputs(self.inputs, random.getrandbits(64), 1)
        pairs = [(random.choice((first, FIRST)), last) for first, last in zip(firsts, lasts, strict=True)]
        for first, last in self.each([*pairs, (FIRST, self._finals[0])]):
            try:
                steps = self._scram.check(Credentials("c", method="SCRAM-SHA-256", data=first))
                outcome(steps)
                who = outcome(steps, last)
                if isinstance(who, Work):
                    who = outcome(steps, who.run())
            except Denied as denied:
                self.counts[f"SCRAM: denied 0x{denied.reason:02X}"] += 1
                continue
            if (
                not isinstance(who, Identity)
                or who.user != "user"
                or (last != self._finals[0] and b"," in last.split(b",p=")[0][30:])
            ):
                raise Wrong(f"{who} came in")
            self.counts["SCRAM: in"] += 1

    def _in_by_token(self, random: Random) -> None:
        for token in self.each(self._made.inputs(self.inputs, random.getrandbits(64), 1)):
            self._show(random.choice(self._tokens), token, may_come_in=False)

    def _in_by_claims(self, random: Random) -> None:
        """Tokens that are signed as they should be, and say anything."""
        heads = self._heads.inputs(self.inputs, random.getrandbits(64), 1)
        for claims in self.each(self._claims.inputs(self.inputs, random.getrandbits(64), 1)):
            head = random.choice((b'{"alg":"HS256"}', heads.pop()))
            self._show(random.choice(self._tokens), signed(head, claims), may_come_in=True)

    def _show(self, tokens: TokenLogin, token: bytes, *, may_come_in: bool) -> None:
        steps = tokens.check(Credentials("c", None, token))
        try:
            step = outcome(steps)
            if isinstance(step, Work):
                step = outcome(steps, step.run())
        except Denied:
            self.counts["tokens: denied"] += 1
            return
        if step is None:
            self.counts["tokens: none"] += 1
            return
        if not isinstance(step, Identity) or not isinstance(step.user, str):
            raise Wrong(f"{step} came in")
        if not may_come_in and step.user != "alice":
            raise Wrong(f"{step} came in with a token that was changed")
        self.counts["tokens: in"] += 1

    def _look_at_certificate(self, random: Random) -> None:
        for data in self.each(self._certificates.inputs(self.inputs, random.getrandbits(64), 1)):
            try:
                found = names(data)
                rfc2253(found.subject)
            except BadDer:
                self.counts["certificates: refused"] += 1
                continue
            self.counts["certificates: read"] += 1

    def _read(self, mutator: Mutator, parse: Any, random: Random) -> None:
        for data in self.each(mutator.inputs(self.inputs, random.getrandbits(64), 1)):
            try:
                parse(data.decode("utf-8", "replace"), "file")
            except SecretsError as refused:
                if SECRET.decode() in str(refused):
                    raise Wrong("a refusal that shows a secret") from refused
                self.counts["files: refused"] += 1
                continue
            self.counts["files: taken"] += 1


def signed(head: bytes, claims: bytes) -> bytes:
    """A token of any bytes with a good signature."""
    first = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in (head, claims))
    return first + b"." + base64.urlsafe_b64encode(hmac.digest(SECRET, first, "sha256")).rstrip(b"=")


def der() -> bytes:
    """A certificate whose name has many kinds of parts."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes as digests
    from cryptography.hazmat.primitives.asymmetric import ed25519

    key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
    parts = [
        (x509.NameOID.COMMON_NAME, "pump-7"), (x509.NameOID.ORGANIZATION_NAME, "Plant, Inc. <ü>"),
        (x509.NameOID.COUNTRY_NAME, "DE"), (x509.NameOID.EMAIL_ADDRESS, "a@b"), (x509.ObjectIdentifier("1.2.3.4"), "x"),
        (x509.NameOID.DOMAIN_COMPONENT, "example"),
    ]  # fmt: skip
    name = x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])
    when = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(7).not_valid_before(when).not_valid_after(when)
    from cryptography.hazmat.primitives.serialization import Encoding

    assert digests
    return made.sign(key, None).public_bytes(Encoding.DER)
