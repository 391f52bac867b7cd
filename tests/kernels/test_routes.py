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
    assert starts.tolist() == [sum(each < place for each in places[first:]) for place in range(count + 1)]
