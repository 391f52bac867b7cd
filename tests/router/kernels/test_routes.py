"""What the rows of a chunk lead to, compiled and as plain Python."""

from array import array
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel_forms import forms

LEAST = 5


def rows_of(topics: list[int]) -> bytearray:
    return bytearray(b"".join(topic.to_bytes(4, "little") + bytes(28) for topic in topics))


@pytest.mark.parametrize("kernel", forms("router.kernels.routes"))
@given(data=st.data())
def test_rows_lead_to_routes(kernel: ModuleType, data: st.DataObject) -> None:
    route_of = array("I", data.draw(st.lists(st.integers(3, 9), min_size=1, max_size=6)))
    topics = data.draw(st.lists(st.integers(0, len(route_of)), min_size=1, max_size=30))
    first = data.draw(st.integers(0, len(topics)))
    rows, stop = rows_of(topics), len(topics)
    routes = [route_of[topic] if topic < len(route_of) else 0 for topic in topics[first:]]
    found, places = kernel.routes_in(rows, first, stop, route_of, LEAST)
    stale = {topic for topic, route in zip(topics[first:], routes, strict=True) if route < LEAST}
    assert set(kernel.unrouted(rows, first, stop, route_of, LEAST)) == stale
    if stale or not routes:
        assert found == [] and places is None
        return
    assert found == list(dict.fromkeys(routes))
    if len(found) == 1:
        assert places is None
        return
    assert [found[places[row]] for row in range(first, stop)] == routes
    wanted = array("I", data.draw(st.lists(st.integers(0, 2), min_size=len(found), max_size=len(found))))
    assert kernel.rows_wanted(first, stop, places, wanted) == [
        row for row in range(first, stop) if wanted[found.index(routes[row - first])]
    ]


@pytest.mark.parametrize("kernel", forms("router.kernels.routes"))
@given(data=st.data())
def test_rows_are_sorted_by_their_places(kernel: ModuleType, data: st.DataObject) -> None:
    """A stable sort, of a part of the chunk's rows; a place may have none of them."""
    count = data.draw(st.integers(1, 6))
    places = data.draw(st.lists(st.integers(0, count - 1), max_size=30))
    first = data.draw(st.integers(0, len(places)))
    # What stands below `first` is not looked at.
    table = memoryview(array("I", [99] * first + places[first:]))
    order, starts = kernel.by_place(first, len(places), table, count)
    assert order.tolist() == sorted(range(first, len(places)), key=places.__getitem__)
    assert starts == [sum(each < place for each in places[first:]) for place in range(count + 1)]


@pytest.mark.parametrize("views_max", [0, 2, 100])
@pytest.mark.parametrize("kernel", forms("router.kernels.routes"))
@given(data=st.data())
def test_of_frames_that_another_shard_wants_the_others_are_empty(
    kernel: ModuleType, data: st.DataObject, views_max: int
) -> None:
    """Neighbours are one piece; up to `views_max` pieces are the chunk's own bytes."""
    places = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=20))
    sizes = data.draw(st.lists(st.integers(0, 5), min_size=len(places), max_size=len(places)))
    wanted = data.draw(st.lists(st.integers(0, 1), min_size=4, max_size=4))
    first = data.draw(st.integers(0, len(places)))
    stop = data.draw(st.integers(first, len(places)))
    each = [bytes([row]) * size for row, size in enumerate(sizes)]
    starts = [sum(sizes[:row]) for row in range(len(sizes))]
    rows = bytearray(
        b"".join(row.to_bytes(4, "little") + at.to_bytes(4, "little") + bytes(24) for row, at in enumerate(starts))
    )
    before, frames = bytes(rows), b"".join(each)
    taken, pieces = kernel.only_wanted(
        rows, frames, first, stop, memoryview(array("I", places)), array("I", wanted), views_max
    )
    assert rows == before
    kept = [each[row] if wanted[places[row]] else b"" for row in range(first, stop)]
    assert b"".join(pieces) == b"".join(kept)
    words = memoryview(taken).cast("I").tolist()
    assert words[0::8] == list(range(first, stop)), "a row is otherwise as it was"
    assert words[1::8] == [len(b"".join(kept[:at])) for at in range(len(kept))]
    runs = sum(
        bool(wanted[places[row]]) and (row == first or not wanted[places[row - 1]]) for row in range(first, stop)
    )
    assert len(pieces) == (runs if runs <= views_max else 1)
    assert all(isinstance(piece, memoryview) for piece in pieces) or runs > views_max
