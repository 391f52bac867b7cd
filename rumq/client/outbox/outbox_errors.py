"""What can go wrong with an outbox's files, each with the way out."""

from rumq.errors import ClientError


class OutboxError(ClientError):
    """The outbox cannot be used. path: of its directory; problem: what was seen, and the way out"""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"outbox {self.path}: {self.problem}"


class OutboxInUse(OutboxError):
    """Another process has it."""


class OutboxFull(OutboxError):
    """It has as many bytes as it may have: nothing of this batch was kept."""


class OutboxFailed(OutboxError):
    """The disk did not take what was published."""
