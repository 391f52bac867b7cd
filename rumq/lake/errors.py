"""Errors of a lake that are not our bugs."""

from rumq.errors import RumqError


class LakeError(RumqError):
    """The lake cannot be used, or does not fit the log. folder: as the operator wrote it; problem: cause and remedy."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(folder, problem)
        self.folder, self.problem = folder, problem

    def __str__(self) -> str:
        return f"lake {self.folder}: {self.problem}"
