"""What goes wrong in a file of mosquitto's, with its line."""

from __future__ import annotations

from rumq.errors import ConfigError, Fault


class MosquittoFileError(ConfigError):
    """line: from 1, 0 for the file as a whole"""

    def __init__(self, path: str, line: int, problem: str) -> None:
        super().__init__(Fault(f"{path}, line {line}" if line else path, "", "", problem))
        self.args = (path, line, problem)  # by which pickle makes it again
        self.path, self.line, self.problem = path, line, problem
