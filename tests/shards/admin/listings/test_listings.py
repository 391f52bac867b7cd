"""Long answers are made some rows a turn, sorted and bounded."""

from collections.abc import Iterator
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.admin.listings.listings import TOPIC_SORTS, Listing, TopicListing, TopicRates
from tests.commitlog.records import append, opened, write
from tests.shards.bus.world import Hand


def rows(count: int) -> Iterator[dict[str, Any] | None]:
    for number in range(count):
        yield {"topic": f"t{number:02}", "records": number} if number % 2 else None


def test_a_turn_goes_through_so_many_rows_and_the_largest_stay() -> None:
    hand, answers = Hand(), list[Any]()
    listing = Listing(hand, rows(20), {"limit": 3}, TOPIC_SORTS, "topics", 8, answers.append)
    listing.go_on()
    turns = 1
    while hand.waiting:
        hand.waiting.pop()[1]()
        turns += 1
    assert turns == 3
    (answer,) = answers
    assert [row["records"] for row in answer["topics"]] == [19, 17, 15] and answer["left_out"] == 7


def test_an_order_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="one of records, rate, topic"):
        Listing(Hand(), rows(1), {"sort": "size"}, TOPIC_SORTS, "topics", 8, lambda answer: None)


def test_topics_have_their_records_and_how_fast_they_grow() -> None:
    store, hand, answers = opened(SimulatedFiles()), Hand(), list[Any]()
    append(store.own[0], [(b"a", b"1"), (b"a", b"2"), (b"b", b"3")])
    write(store.own[0])
    rates = TopicRates(store, hand, hand)
    hand.monotonic += 10.0
    TopicListing(store, rates, hand).list({"topic": "a", "sort": "topic"}, lambda topic: True, answers.append)
    ((row,),) = [answer["topics"] for answer in answers]
    assert (row["topic"], row["records"], row["records_per_second"]) == ("a", 2, 0.2)


def test_topics_that_the_reader_may_not_read_are_neither_listed_nor_counted() -> None:
    store, hand, answers = opened(SimulatedFiles()), Hand(), list[Any]()
    append(store.own[0], [(b"open", b"1"), (b"secret", b"2"), (b"wide", b"3")])
    TopicListing(store, TopicRates(store, hand, hand), hand).list(
        {"limit": 1}, lambda topic: topic != "secret", answers.append
    )
    (answer,) = answers
    assert [row["topic"] for row in answer["topics"]] == ["open"] and answer["left_out"] == 1
