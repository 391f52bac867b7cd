"""Which partitions members were given, as consumers write it; and anything else that a leader may send instead."""

from __future__ import annotations

import pytest

from rumq.kafka.groups.messages import KafkaGroupRow, MemberRow
from rumq.kafka.reports.assignment import READ_BYTES_MAX, assigned_to, places_of


def assignment(*topics: tuple[str, list[int]], version: int = 1) -> bytes:
    """As clients write it, with user data behind."""
    made = version.to_bytes(2, "big") + len(topics).to_bytes(4, "big")
    for name, numbers in topics:
        made += len(name).to_bytes(2, "big") + name.encode() + len(numbers).to_bytes(4, "big")
        made += b"".join(number.to_bytes(4, "big", signed=True) for number in numbers)
    return made + (3).to_bytes(4, "big") + b"ABC"


def group(*assignments: bytes, kind: str = "consumer") -> KafkaGroupRow:
    members = [MemberRow(f"m{n}", None, f"c{n}", "h", b"", each) for n, each in enumerate(assignments)]
    return KafkaGroupRow("g", "Stable", kind, "range", tuple(members))


@pytest.mark.parametrize("version", [0, 1, 3])
def test_an_assignment_is_read_in_every_version(version: int) -> None:
    found = assigned_to(group(assignment(("main", [0, 2]), version=version), assignment(("main", [1]), ("v", [0]))))
    assert found.places == {"m0": [("main", 0), ("main", 2)], "m1": [("main", 1), ("v", 0)]}
    assert found.readers == {("main", 0): "c0", ("main", 2): "c0", ("main", 1): "c1", ("v", 0): "c1"}


@pytest.mark.parametrize("made_up", [b"", b"x", b"\0\1\x7f\xff\xff\xff", b"\0\0\0\0\0\1\xff\xff", assignment()[:5]])
def test_what_has_another_form_gives_nobody_anything(made_up: bytes) -> None:
    assert places_of(made_up) == [] and assigned_to(group(made_up)).readers == {}


def test_groups_of_another_type_are_not_read() -> None:
    assert assigned_to(group(assignment(("main", [0])), kind="connect")) == ({}, {})


def test_no_more_is_read_than_a_bound() -> None:
    large = assignment(*[("x" * (READ_BYTES_MAX // 28), [0])] * 7)
    assert [*assigned_to(group(*[large] * 9)).places] == ["m0", "m1", "m2"]
