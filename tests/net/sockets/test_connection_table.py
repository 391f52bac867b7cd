"""Connections by their descriptors: a number is another connection's as soon as it is free."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rumq.net.sockets.connection_table import ConnectionTable


def connection(fd: int) -> Any:
    return SimpleNamespace(fd=fd)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12))))
def test_it_is_a_mapping_from_descriptors(steps: list[tuple[bool, int]]) -> None:
    table, model = ConnectionTable(), dict[int, Any]()
    by_fd = table.by_fd
    for comes, fd in steps:
        if comes:
            model[fd] = connection(fd)
            table.add(model[fd])
        elif fd in model:
            table.remove(model.pop(fd))
        assert len(table) == len(model) and bool(table) is bool(model)
        assert list(table.values()) == [model[each] for each in sorted(model)]
    assert table.by_fd is by_fd
    assert all(each in table and by_fd[fd] is each for fd, each in model.items())


def test_one_that_has_left_is_not_in_it_though_another_has_its_descriptor() -> None:
    table, left, here = ConnectionTable(), connection(3), connection(3)
    table.add(left)
    table.remove(left)
    assert left not in table
    table.add(here)
    assert left not in table and here in table
    left.fd = -1  # as `Pump.forget` leaves it
    assert left not in table and connection(99) not in table
