"""The rate of a cluster, from what a message costs."""

import pytest

from bench.cluster.scaling import Costs, point

COSTS = Costs(alone=1.0, leader=2.0, follower=0.5, relay=0.6, crossing=0.15)


def test_one_node_has_no_copies_and_relays_nothing() -> None:
    assert point(COSTS, 1) == (1, 1.0, 1e6, 0.0, 0.0)


def test_the_work_of_a_message_is_shared_by_all_nodes() -> None:
    three = point(COSTS, 3)
    assert three.us == pytest.approx(2.0 + 2 * 0.5 + 2 / 3 * 0.9)
    assert three.rate == pytest.approx(3e6 / three.us)
    assert three.copies == pytest.approx(1.0 / three.us) and three.ways == pytest.approx(0.6 / three.us)


def test_more_nodes_have_no_more_copies_but_relay_more() -> None:
    five = point(COSTS, 5)
    assert five.us == pytest.approx(3.0 + 4 / 5 * 0.9)
    assert five.rate > point(COSTS, 3).rate
