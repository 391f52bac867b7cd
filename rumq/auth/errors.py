"""The errors of this floor.

AuthError
├── SecretsError  the operator's fault: a file of users, keys or rules with an error, and its line
├── Denied        the client's fault: not authenticated; carries the reason code, and nothing that the client sent
└── Busy          too many clients wait to be checked, and this one's address has the most
"""

from __future__ import annotations

NOT_AUTHORIZED, BAD_USER_NAME_OR_PASSWORD, BAD_METHOD = 0x87, 0x86, 0x8C
SERVER_UNAVAILABLE, SERVER_BUSY = 0x88, 0x89


class AuthError(Exception):
    """The root of what this floor raises on purpose."""


class SecretsError(AuthError):
    """A file of users, keys or rules was refused. line: from 1; 0 for the file as a whole"""

    def __init__(self, path: str, line: int, problem: str) -> None:
        super().__init__(path, line, problem)
        self.path, self.line, self.problem = path, line, problem

    def __str__(self) -> str:
        where = f"{self.path}, line {self.line}" if self.line else self.path
        return f"{where}: {self.problem}"


class Busy(AuthError):
    """A client is not checked, because too many wait."""


class Denied(AuthError):
    """A client is not authenticated. reason: of MQTT 5, 2.4; why: for the operator alone, without any secret

    guess: the client may be guessing passwords, so its answer is delayed (`rumq.auth.login_backoff`)
    """

    def __init__(self, reason: int, why: str, *, guess: bool = False) -> None:
        super().__init__(reason, why)
        self.reason, self.why, self.guess = reason, why, guess
