"""What goes wrong in this floor, and whose fault it is.

AuthError
├── SecretsError  the operator's: a file of users, keys or rules that cannot be taken, with its line
├── Denied        the client's: it may not come in; carries the reason code, and never what it sent
└── Busy          nobody's: too many clients wait to be checked, and the address of this one has the most
"""

from __future__ import annotations

NOT_AUTHORIZED, BAD_USER_NAME_OR_PASSWORD, BAD_METHOD = 0x87, 0x86, 0x8C
SERVER_UNAVAILABLE, SERVER_BUSY = 0x88, 0x89


class AuthError(Exception):
    """The root of what this floor raises on purpose."""


class SecretsError(AuthError):
    """A file that says who may come in, or what they may do, was refused. line: from 1; 0 for the file as a whole"""

    def __init__(self, path: str, line: int, problem: str) -> None:
        super().__init__(path, line, problem)
        self.path, self.line, self.problem = path, line, problem

    def __str__(self) -> str:
        where = f"{self.path}, line {self.line}" if self.line else self.path
        return f"{where}: {self.problem}"


class Busy(AuthError):
    """A client is not checked, for too many wait."""


class Denied(AuthError):
    """A client may not come in. reason: of MQTT 5, 2.4; why: for the operator alone, without any secret

    guess: the answer is delayed, because who asks may be trying passwords
    """

    def __init__(self, reason: int, why: str, *, guess: bool = False) -> None:
        super().__init__(reason, why)
        self.reason, self.why, self.guess = reason, why, guess
