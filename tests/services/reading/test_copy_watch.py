"""Whether a node's copies can be read from: missing, behind, or nobody knows."""

import pytest

from rumq.services.contract.faults import CallFault
from rumq.services.reading.copy_watch import AWAY_SECONDS_MAX, CopyWatch, Led, name_of


def test_a_copy_that_keeps_up_is_read() -> None:
    watch = CopyWatch()
    watch.look([Led("p", 10)], {"p": 8}, 0.0)
    watch.check()
    watch.look([Led("p", 20)], {"p": 10}, 3.0)  # what was committed three seconds ago is here
    watch.check()


def test_a_copy_that_is_behind_is_named_until_it_has_caught_up() -> None:
    watch = CopyWatch()
    watch.look([Led("main/g1/p0", 10)], {"main/g1/p0": 8}, 0.0)
    watch.look([Led("main/g1/p0", 20)], {"main/g1/p0": 9}, 3.0)
    with pytest.raises(CallFault, match=r"NO_COPY_HERE.*main/g1/p0"):
        watch.check()
    watch.look([Led("main/g1/p0", 20)], {"main/g1/p0": 20}, 6.0)
    watch.check()


def test_a_partition_without_a_copy_is_named() -> None:
    watch = CopyWatch()
    watch.look([Led(name_of("main", 0), 0), Led(name_of("main", 1), 5)], {name_of("main", 0): 0}, 0.0)
    with pytest.raises(CallFault, match=r"no copy of main/g1/p1"):
        watch.check()


def test_a_change_of_leaders_is_waited_for_and_isolation_is_not() -> None:
    watch = CopyWatch()
    watch.look([Led("p", 10)], {"p": 10}, 0.0)
    watch.look(None, {"p": 10}, 3.0)
    watch.look(None, {"p": 10}, 3.0 + AWAY_SECONDS_MAX)
    watch.check()
    watch.look(None, {"p": 10}, 3.1 + AWAY_SECONDS_MAX)
    with pytest.raises(CallFault, match=r"does not reach the leaders"):
        watch.check()
    watch.look([Led("p", 10)], {"p": 10}, 30.0)
    watch.check()
