"""Rows of a chunk sorted to many groups of readers at once. Cost: rows plus pairs of route and group.

For a group that wants the rows of few of a chunk's routes, in one form. Others are delivered one by one, with tables
(`router.delivery`)."""
# compiled: hot

from __future__ import annotations

from array import array
from typing import TypeAlias

from router.kernels import routes as kernel
from router.matching.routes import Places, RouteTable
from router.readers.reader import DENIED, Group, Reader

GROUPS_MIN = 3  # with fewer groups tables cost less

# A group, its readers, the form they get, and rows[first:stop]: the numbers of their rows, ascending
Part: TypeAlias = "tuple[Group, list[Reader], int, array[int] | memoryview, int, int]"


def scatter(
    routes: RouteTable, index: int, numbers: list[int], places: Places, first: int, stop: int,
    committed_only: bool,
) -> tuple[list[Part], list[Group]]:  # fmt: skip
    """What groups with live readers get of rows first..stop, and the groups that need tables.

    numbers, places: the routes of the rows, as `RouteTable.routes_of` gives them"""
    wants: dict[Group, list[int]] = {}  # group -> [place, form, place, form, ...]
    for place, number in enumerate(numbers):
        for group, form in routes.route(number):
            live = group.live[index]
            if not live.listed():
                continue
            asked = wants.get(group)
            if asked is None:
                wants[group] = [place, form]
            else:
                asked.append(place)
                asked.append(form)
    order, starts = kernel.by_place(first, stop, places, len(numbers))
    parts: list[Part] = []
    others: list[Group] = []
    for group, asked in wants.items():
        if group.committed_only != committed_only:
            continue
        form = asked[1]
        live = group.live[index]
        readers = live.listed()
        reader = readers[0]
        if len(asked) == 2:
            if form == DENIED or group.is_shard or reader.share is not None:
                others.append(group)
            else:
                place = asked[0]
                parts.append((group, readers, form, order, starts[place], starts[place + 1]))
        elif (
            group.is_shard
            or reader.share is not None
            or not is_one_form(asked)
            or len(asked) > len(numbers)  # more than half of the routes: a table is shorter
        ):
            others.append(group)
        else:
            rows = array("I")
            for at in range(0, len(asked), 2):
                rows.extend(order[starts[asked[at]] : starts[asked[at] + 1]])
            rows = array("I", sorted(rows))
            parts.append((group, readers, form, rows, 0, len(rows)))
    return parts, others


def is_one_form(asked: list[int]) -> bool:
    """Whether all routes of a group lead to the same form, and to one that it may receive."""
    form = asked[1]
    if form == DENIED:
        return False
    for at in range(3, len(asked), 2):  # noqa: SIM110  # no generator for the compiler
        if asked[at] != form:
            return False
    return True
