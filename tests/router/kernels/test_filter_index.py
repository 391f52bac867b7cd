"""Filters against topics, compiled and as plain Python, against the rule said plainly. MQTT 5.0, 4.7."""

import random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.mqtt.topics import matches
from tests.kernel_forms import forms

KERNEL = pytest.mark.parametrize("kernel", forms("router.kernels.filter_index"))

LEVELS = st.sampled_from(["a", "b", "c", "", "$s"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=6).map("/".join).filter(bool)
FILTERS = (
    st.tuples(st.lists(st.sampled_from(["a", "b", "c", "", "+", "$s"]), min_size=0, max_size=6), st.booleans())
    .map(lambda f: "/".join([*f[0], "#"] if f[1] or not f[0] else f[0]))
    .filter(bool)
)
CHANGES = st.lists(st.tuples(st.booleans(), FILTERS), max_size=40)


def walked(index: Any, topic: str, pending: list[bytes], visits_max: int = 1 << 60) -> tuple[Any, list[bytes], int]:
    found, left, visits = index.walk(topic.split("/"), not topic.startswith("$"), pending, visits_max)
    return found, left, visits


def is_empty(index: Any) -> bool:
    return index.count == 0 and index.nodes == 1 and not index.levels and not index.numbers


@KERNEL
@given(changes=CHANGES, topics=st.lists(TOPICS, max_size=4))
def test_it_finds_what_the_rule_says_whatever_came_and_went(
    kernel: ModuleType, changes: list[tuple[bool, str]], topics: list[str]
) -> None:
    index, model = kernel.FilterIndex(), list[str]()
    for is_added, each in changes:
        if is_added:
            assert index.filters[index.add(each)] == each
            model.append(each)
        elif each in model:
            number = index.discard(each)
            model.remove(each)
            assert bool(number) is (each not in model)
        else:
            with pytest.raises(KeyError):
                index.discard(each)
        assert index.count == len(set(model))
        for topic in topics:
            assert sorted(index.match(topic)) == sorted({f for f in model if matches(f, topic)})
    for each in model:
        index.discard(each)
    assert is_empty(index)


@KERNEL
@given(filters=st.lists(FILTERS, max_size=30), topic=TOPICS)
def test_a_node_ends_a_filter_or_parts_two(kernel: ModuleType, filters: list[str], topic: str) -> None:
    """So that there are at most two for each filter, however many levels it has, and a match visits each once."""
    index = kernel.FilterIndex()
    for each in filters:
        index.add(each)
    assert index.nodes <= 2 * len(set(filters)) + 1
    found, left, visits = walked(index, topic, [b""])
    assert left == [] and visits <= index.nodes and len(set(found)) == len(found)
    assert index.visits == visits


@KERNEL
@settings(max_examples=200)
@given(
    first=st.lists(FILTERS, max_size=20), changes=CHANGES, topic=TOPICS, seed=st.integers(0, 1 << 30),
)  # fmt: skip
def test_what_stays_is_found_in_pieces_whatever_comes_and_goes_between_them(
    kernel: ModuleType, first: list[str], changes: list[tuple[bool, str]], topic: str, seed: int
) -> None:
    chance = random.Random(seed)
    index = kernel.FilterIndex()
    there = dict.fromkeys(first)
    for each in there:
        index.add(each)
    always, found, pending, todo = set(there), set[str](), [b""], list(changes)
    while pending:
        numbers, pending, visits = walked(index, topic, pending, 1)
        assert visits <= 1
        found.update(index.filters[number] for number in numbers)
        for _ in range(min(len(todo), chance.randrange(4))):
            is_added, each = todo.pop()
            if is_added:
                index.add(each)
                there[each] = None
                if each not in always:
                    continue
            elif each in there:
                while each in index.numbers:
                    index.discard(each)
                del there[each]
                always.discard(each)
    assert {f for f in always if matches(f, topic)} <= found
    assert all(matches(f, topic) for f in found)


@KERNEL
def test_filters_of_many_levels_that_share_nothing_cost_two_nodes_each(kernel: ModuleType) -> None:
    """The attack: each of them matches, at every level."""
    chance = random.Random(1)
    made = dict.fromkeys("/".join(["+", *(chance.choice("+a") for _ in range(30))]) for _ in range(500))
    index = kernel.FilterIndex()
    for each in made:
        index.add(each)
    found, _, visits = walked(index, "/".join(["t", *["a"] * 30]), [b""])
    assert len(found) == len(made) and visits <= 2 * len(made)


@KERNEL
def test_targets_are_tallied_and_numbers_are_found(kernel: ModuleType) -> None:
    index = kernel.FilterIndex()
    numbers = [index.add(each) for each in ("a", "+", "#", "b")]
    one, other = object(), object()
    for number, target in zip(numbers, (one, other, one, other), strict=True):
        index.targets[number] = target
    found, _, _ = walked(index, "a", [b""])
    assert kernel.tally(found, 0, 3, index.targets) == {one: 2, other: 1}
    assert kernel.tally(found, 3, 3, index.targets) == {}
    assert {kernel.place(number, found) for number in numbers[:3]} == {0, 1, 2}
    assert kernel.place(numbers[3], found) == -1
    index.discard("b")
    assert index.targets[numbers[3]] is None
