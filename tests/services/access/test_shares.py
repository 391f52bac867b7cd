"""Shares of calls and bytes: in all, of a connection, a network, a user; nobody has more than half."""

import pytest

from rumq.services.access.shares import ShareBound, Shares
from rumq.services.contract.faults import CallFault

A, B = (("connection", "1"), ("network", "10.0.0.1")), (("connection", "2"), ("network", "10.0.0.2"), ("user", "anna"))


def shares(total: int = 10, of_connection: int = 0) -> Shares:
    return Shares(ShareBound("grpc.calls_max", "calls", "TOO_MANY_CALLS", total), of_connection)


def test_a_network_has_half_and_others_the_rest() -> None:
    found = shares()
    for _ in range(5):
        found.take(1, A)
    with pytest.raises(CallFault, match="this network has 5 calls in use, and 5 are its share"):
        found.take(1, A)
    for _ in range(5):
        found.take(1, B)
    with pytest.raises(CallFault, match=r"grpc\.calls_max = 10 calls are in use"):
        found.take(1, (("network", "10.0.0.3"),))
    found.give_back(1, A)
    found.take(1, (("network", "10.0.0.3"),))
    assert found.held == 10 and found.refused == 2


def test_a_user_has_half_wherever_it_calls_from() -> None:
    found = shares()
    for n in range(5):
        found.take(1, (("network", str(n)), ("user", "anna")))
    with pytest.raises(CallFault) as fault:
        found.take(1, (("network", "9"), ("user", "anna")))
    assert fault.value.metadata == {"setting": "grpc.calls_max", "limit": "5", "holder": "user"}


def test_a_connection_has_a_bound_of_its_own() -> None:
    found = shares(1_000, of_connection=3)
    for _ in range(3):
        found.take(1, A)
    with pytest.raises(CallFault, match="this connection has 3"):
        found.take(1, A)
    found.take(1, (("connection", "2"), ("network", "10.0.0.1")))


def test_more_than_a_share_is_given_to_one_who_holds_nothing() -> None:
    """A single message larger than half of the bytes is not refused for ever."""
    found = shares(100)
    assert found.fits(80, A)
    found.take(80, A)
    assert not found.fits(1, A) and not found.fits(30, B) and found.fits(20, B)


def test_what_is_given_back_leaves_nothing_behind() -> None:
    found = shares()
    with pytest.raises(KeyError), found.hold(2, B):
        raise KeyError
    assert found.held == 0 and not found._holders
