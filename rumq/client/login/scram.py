"""SCRAM-SHA-256, the client's side. RFC 5802, RFC 7677; in MQTT 5.0, 4.12 (non-normative example).

The password is never sent, and the broker proves that it knows the password's keys. No I/O."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable

from rumq.client.login.enhanced_login import LoginFailed

ITERATIONS_MIN, ITERATIONS_MAX = 4096, 5_000_000  # fewer give the password away; more would stop us for minutes
CHANNEL = "n,,"  # no channel binding


class ScramLogin:
    """SCRAM-SHA-256 with a user name and a password."""

    method = "SCRAM-SHA-256"

    def __init__(
        self, username: str, password: str, random_bytes: Callable[[int], bytes] = secrets.token_bytes
    ) -> None:
        self._username, self._password = username, password
        self._random_bytes = random_bytes
        self._bare = self._nonce = ""
        self._server_signature = b""

    def first(self) -> bytes:
        self._nonce = base64.b64encode(self._random_bytes(18)).decode()
        name = self._username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}"
        self._server_signature = b""
        return f"{CHANNEL}{self._bare}".encode()

    def answer(self, data: bytes) -> bytes:
        if self._server_signature:
            raise LoginFailed(self.method, "the broker asks a second time")
        nonce, salt, iterations = self._offer(data)
        salted = hashlib.pbkdf2_hmac("sha256", self._password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        channel = base64.b64encode(CHANNEL.encode()).decode()
        final = f"c={channel},r={nonce}"
        signed = f"{self._bare},{data.decode()},{final}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def _offer(self, data: bytes) -> tuple[str, bytes, int]:
        """Nonce, salt and iterations of the server's first message."""
        try:
            fields = dict(part.split("=", 1) for part in data.decode().split(","))
            nonce, salt, iterations = fields["r"], base64.b64decode(fields["s"], validate=True), int(fields["i"])
        except (ValueError, KeyError):
            raise LoginFailed(self.method, "the broker's challenge is malformed") from None
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise LoginFailed(self.method, "the broker's challenge answers another login")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            allowed = f"{ITERATIONS_MIN} to {ITERATIONS_MAX}"
            raise LoginFailed(self.method, f"the broker asks for {iterations} iterations, {allowed} are accepted")
        return nonce, salt, iterations

    def finish(self, data: bytes) -> None:
        expected = b"v=" + base64.b64encode(self._server_signature)
        if not self._server_signature or not hmac.compare_digest(data, expected):
            raise LoginFailed(self.method, "the broker did not prove that it knows the user: it may be another one")
