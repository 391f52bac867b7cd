"""Enhanced authentication, the client's side: what a method has to do. MQTT 5.0, 4.12."""

from typing import Protocol

from rumq.errors import ClientError


class LoginFailed(ClientError):
    """The broker's side of enhanced authentication is not what it should be: it may be another broker."""

    def __init__(self, method: str, why: str) -> None:
        super().__init__(method, why)
        self.method, self.why = method, why

    def __str__(self) -> str:
        return f"login with {self.method}: {self.why}"


class EnhancedLogin(Protocol):
    """A method of authentication: `first` with CONNECT, `answer` to each AUTH, `finish` with CONNACK."""

    method: str

    def first(self) -> bytes | None:
        """Data of CONNECT; begins anew on each connection."""

    def answer(self, data: bytes) -> bytes:
        """raises: LoginFailed. May take a moment: called in a thread"""

    def finish(self, data: bytes) -> None:
        """raises: LoginFailed where the broker has not proved what the method asks for"""
