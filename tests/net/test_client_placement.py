"""A client lives in the shard that its id leads to; a connection elsewhere is handed over with what was read."""

from typing import Any

import pytest

from rumq.net.client_placement import ClientPlacement, home_of


class Connection:
    peer = "10.0.0.1:5"

    def __init__(self, facts: bytes = b"") -> None:
        self._facts = facts

    def handover_state(self) -> bytes:
        return self._facts

    def hand_over(self) -> int:
        return 42


class Passing:
    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []

    def give(self, *what: Any) -> None:
        self.given.append(what)


def client_of(shard: int, count: int) -> str:
    return next(f"c{n}" for n in range(100) if home_of(f"c{n}", count) == shard)


def test_every_client_has_one_home_and_alone_a_shard_is_everybody_s() -> None:
    placements = [ClientPlacement(None, index, 3) for index in range(3)]
    for n in range(50):
        assert sum(each.is_here(f"c{n}") for each in placements) == 1
        assert ClientPlacement(None, 0, 1).is_here(f"c{n}")


@pytest.mark.parametrize(("facts", "kind"), [(b"", "client"), (b"tls", "known")])
def test_a_connection_is_handed_to_the_home_of_its_client(facts: bytes, kind: str) -> None:
    passing: Any = Passing()
    placement = ClientPlacement(passing, 0, 2)
    connection: Any = Connection(facts)
    assert not placement.hand_over(connection, 1, client_of(0, 2), b"connect")
    assert placement.hand_over(connection, 1, client_of(1, 2), b"connect")
    assert passing.given == [(1, kind, 42, Connection.peer, facts + b"connect", 1)]
