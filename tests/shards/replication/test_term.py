"""A leader that is deposed ends its process at once, and its supervisor knows why."""

import os

import pytest

from rumq.shards.replication.term import Term, leave
from rumq.supervision.supervisor import DEPOSED


class Ended(BaseException):
    """The process has ended: no handler and no `finally` of it runs."""


def test_the_process_ends_at_once_with_the_code_of_a_deposed_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        raise Ended

    monkeypatch.setattr(os, "_exit", end)
    with pytest.raises(Ended):
        leave()
    assert codes == [DEPOSED] and DEPOSED != 0


def test_a_term_ends_the_process_unless_it_is_told_otherwise() -> None:
    assert Term.__dataclass_fields__["end"].default is leave
