"""Numbers that are held several times are released by the last holder, and one that is held again is not told."""

from commitlog.names.held_numbers import HeldNumbers


def test_the_last_holder_releases_a_number() -> None:
    held = HeldNumbers()
    held.hold(7)
    held.hold(7)
    held.release(7)
    assert 7 in held and held.take_released() == []
    held.release(7)
    assert 7 not in held and held.take_released() == [7] and held.take_released() == []


def test_a_number_that_is_held_again_meanwhile_is_not_told() -> None:
    held = HeldNumbers()
    for number in (3, 1):
        held.hold(number)
        held.release(number)
    held.hold(3)
    assert held.take_released() == [1]


def test_a_release_of_what_nobody_holds_is_nothing() -> None:
    held = HeldNumbers()
    held.release(5)
    assert len(held) == 0 and held.take_released() == []
