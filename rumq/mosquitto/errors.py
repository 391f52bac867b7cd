"""What goes wrong in a file of mosquitto's, with its line."""

from __future__ import annotations

from rumq.errors import RumqError


class MosquittoFileError(RumqError):
    """line: from 1, 0 for the file as a whole"""

    def __init__(self, path: str, line: int, problem: str) -> None:
        super().__init__(path, line, problem)
        self.path, self.line, self.problem = path, line, problem

    def __str__(self) -> str:
        return (
            f"{self.path}, line {self.line}: {self.problem}" if self.line else f"{self.path}: {self.problem}"
        )
