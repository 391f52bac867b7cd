"""Beyond a bound the oldest of the network with the most goes: by hand, and against a plain list."""

from hypothesis import given
from hypothesis import strategies as st

from rumq.gateway.http.network_shares import NetworkShares


def shares(count_max: int, network_max: int, busy: set[str] | None = None) -> tuple[NetworkShares[str], list[str]]:
    gone: list[str] = []
    return NetworkShares(count_max, network_max, gone.append, (busy or set()).__contains__), gone


def test_a_network_may_have_all_that_nobody_else_wants() -> None:
    found, gone = shares(4, 4)
    for name in "abcd":
        found.add(name, "n1")
    assert len(found) == 4 and not gone
    found.add("e", "n1")
    assert gone == ["a"], "its own oldest"


def test_who_comes_is_let_in_at_the_cost_of_who_has_most() -> None:
    found, gone = shares(4, 4)
    for name, network in [("x", "n0"), ("a", "n1"), ("b", "n1"), ("c", "n1")]:
        found.add(name, network)
    for name in "yz":
        found.add(name, "n2")
    assert gone == ["a", "b"] and "x" in found, "the first of all is of a network that has one"


def test_a_network_has_a_bound_of_its_own() -> None:
    found, gone = shares(9, 2)
    for name in "abc":
        found.add(name, "n1")
    assert gone == ["a"] and found.count_of("n1") == 2


def test_a_busy_one_goes_when_its_network_has_no_other() -> None:
    found, gone = shares(3, 3, {"a", "b"})
    for name in "abc":
        found.add(name, "n1")
    found.add("x", "n2")
    found.add("y", "n2")
    assert gone == ["c", "a"]


def test_one_that_is_about_to_leave_goes_first() -> None:
    found, gone = shares(3, 3)
    for name in "ab":
        found.add(name, "n1")
    found.add("c", "n1", goes_first=True)
    found.add("d", "n1")
    assert gone == ["c"]


def test_one_that_is_let_in_again_is_the_newest() -> None:
    found, gone = shares(2, 2)
    for name in "aba":
        found.add(name, "n1")
    found.add("c", "n1")
    assert gone == ["b"] and found.shed == 1
    found.discard("nobody")
    assert len(found) == 2


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), st.booleans()), max_size=200))
def test_it_agrees_with_a_list(steps: list[tuple[int, int, bool]]) -> None:
    found: NetworkShares[int] = NetworkShares(8, 5, lambda item: gone.append(item))
    gone: list[int] = []
    model: dict[int, int] = {}  # item -> network, the oldest first
    for item, network, is_added in steps:
        model.pop(item, None)
        if is_added:
            found.add(item, str(network))
            model[item] = network
        else:
            found.discard(item)
        for victim in gone:
            network = model[victim]
            mine = [each for each in model if model[each] == network]
            assert victim == mine[0], "the oldest of its network"
            assert len(mine) > 5 or len(mine) == max(list(model.values()).count(n) for n in range(5))
            del model[victim]
        gone.clear()
        assert set(model) == {each for each in range(31) if each in found} and len(found) == len(model) <= 8
        assert all(found.count_of(str(n)) == list(model.values()).count(n) <= 5 for n in range(5))
