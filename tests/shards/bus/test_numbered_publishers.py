"""Numbers of publishers on the way to another shard are given again once nothing on its way has them."""

from rumq.shards.bus.numbered_publishers import NumberedPublishers


def test_a_client_keeps_its_number_and_two_have_two() -> None:
    publishers = NumberedPublishers()
    assert publishers.hold(b"a", 0) == (1, True)
    assert publishers.hold(b"b", 0) == (2, True)
    assert publishers.hold(b"a", 0) == (1, False)
    assert (publishers.known(b"a"), publishers.known(b"c")) == (1, 0)
    assert publishers.names == [b"", b"a", b"b"]


def test_a_number_is_another_s_once_its_last_record_is_committed() -> None:
    publishers = NumberedPublishers(kept_max=0)
    number, _ = publishers.hold(b"a", 0)
    publishers.release(number)
    assert publishers.hold(b"b", 100) == (2, True), "records of this turn are not handed over yet"
    publishers.appended(7)
    assert publishers.hold(b"c", 6) == (3, True), "the owner has not committed them"
    assert publishers.hold(b"d", 7) == (number, True)
    assert publishers.names[number] == b"d" and publishers.known(b"a") == 0
    assert publishers.hold(b"a", 7) == (4, True)


def test_who_returns_before_that_has_its_number_and_nobody_else_gets_it() -> None:
    publishers = NumberedPublishers(kept_max=0)
    number, _ = publishers.hold(b"a", 0)
    publishers.release(number)
    publishers.appended(1)
    assert publishers.hold(b"a", 9) == (number, False)
    assert publishers.hold(b"b", 9) == (2, True)
    publishers.release(number)
    assert publishers.hold(b"a", 9) == (number, False)
    publishers.appended(2)
    assert publishers.hold(b"c", 9) == (3, True), "it is held again"


def test_some_that_nobody_uses_are_kept_for_those_who_return() -> None:
    publishers = NumberedPublishers(kept_max=2)
    for name in (b"a", b"b"):
        publishers.release(publishers.hold(name, 0)[0])
    publishers.appended(1)
    assert publishers.hold(b"c", 9) == (3, True)
    publishers.release(3)
    publishers.appended(2)
    assert publishers.hold(b"d", 9) == (1, True), "the one that was released first"


def test_there_are_as_many_as_hold_one_however_many_come() -> None:
    publishers = NumberedPublishers(kept_max=4)
    held = publishers.hold(b"always", 0)[0]
    for turn in range(1000):
        publishers.release(publishers.hold(b"c%d" % turn, turn)[0])
        publishers.appended(turn)
    assert len(publishers.names) < 12 and publishers.names[held] == b"always"
    assert len(publishers._numbers) < 12 and len(publishers._unused) < 12
