"""Shares: nobody has more than half, and what was taken is given back."""

from rumq.kafka.access.shares import KafkaShares


def test_nobody_has_more_than_half() -> None:
    shares = KafkaShares(10)
    assert [shares.take(1, ("network a",)) for _ in range(6)] == [True] * 5 + [False]
    assert shares.take(5, ("network b", "user anna")) and not shares.take(1, ("network c",))
    assert (shares.held, shares.refused) == (10, 2)
    shares.give_back(5, ("network b", "user anna"))
    assert shares.free(("network b", "user anna")) == 5 and shares.free(("network a",)) == 0


def test_what_is_there_already_counts_whatever_is_free() -> None:
    shares = KafkaShares(10)
    shares.add(50, ("user anna",))
    assert shares.free(("user anna",)) == shares.free(("user ben",)) == 0
    shares.give_back(50, ("user anna",))
    assert shares.free(("user anna",)) == 5
