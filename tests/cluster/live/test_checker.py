"""The checker sees what it is there to see: a message lost, at two places, twice, out of order; gaps are right."""

import math

from tests.cluster.live.checker import Copy, Found, Place, acknowledged_nowhere, check_copies, check_replays
from tests.cluster.live.delay import DelayedPackets
from tests.cluster.live.gaps import Gap, gap_of, quantile, table
from tests.cluster.live.picture import draw
from tests.cluster.live.register import History
from tests.faults.kill.ledger import Entry, Ledger

PARTITION = "main/g1/p0"


def ledger_of(*numbers: int) -> Ledger:
    """Publisher p has sent these with QoS 1 or 2 by turns, and all were acknowledged."""
    ledger = Ledger()
    for number in numbers:
        entry = Entry("p", number)
        ledger.publishes(entry, 1 + number % 2)
        ledger.acknowledges(entry)
    return ledger


def copy(*numbers: int, first_lsn: int = 10) -> Copy:
    return {
        Place(PARTITION, first_lsn + at): Found("t/0", Entry("p", number).payload) for at, number in enumerate(numbers)
    }


def replay(*numbers: int, first_lsn: int = 10) -> list[tuple[Found, int]]:
    return [(found, place.lsn) for place, found in copy(*numbers, first_lsn=first_lsn).items()]


def test_equal_copies_with_everything_are_right() -> None:
    copies = {name: copy(0, 1, 2) for name in ("n1", "n2", "n3")}
    assert check_copies(copies, ledger_of(0, 1, 2)) == []
    assert check_replays({"n1": replay(0, 1, 2)}, copies, ledger_of(0, 1, 2)) == []


def test_an_acknowledged_message_that_one_copy_lacks_is_seen() -> None:
    copies = {"n1": copy(0, 1), "n2": copy(0, 1), "n3": copy(0)}
    [only, missing] = check_copies(copies, ledger_of(0, 1))
    assert "lsn 11 is only at n1 n2" in only and "not in the files of n3" in missing
    assert acknowledged_nowhere(copies, ledger_of(0, 1)) == []


def test_a_message_that_no_copy_has_is_lost() -> None:
    copies = {"n1": copy(0), "n2": copy(0)}
    assert acknowledged_nowhere(copies, ledger_of(0, 1)) == [Entry("p", 1)]
    assert any("not in the log" in fault for fault in check_replays({"n1": replay(0)}, copies, ledger_of(0, 1)))


def test_one_lsn_with_two_values_is_seen() -> None:
    assert any(
        "lsn 10 differs" in fault for fault in check_copies({"n1": copy(0, 1), "n2": copy(1, 0)}, ledger_of(0, 1))
    )


def test_a_replay_with_other_lsns_than_the_files_is_seen() -> None:
    copies = {"n1": copy(0, 1)}
    assert any(
        "elsewhere" in fault for fault in check_replays({"n1": replay(0, 1, first_lsn=11)}, copies, ledger_of(0, 1))
    )


def test_a_replay_with_a_qos_2_message_twice_or_out_of_order_is_seen() -> None:
    copies = {"n1": copy(1, 3, 1)}
    [twice] = check_replays({"n1": replay(1, 3, 1)}, copies, ledger_of(1, 3))
    assert "2 times" in twice
    [order] = check_replays({"n1": replay(3, 1)}, {"n1": copy(3, 1)}, ledger_of(1, 3))
    assert "came behind" in order


def test_a_gap_is_the_longest_wait_that_ends_after_the_harm_began() -> None:
    acked_at = [1.0, 1.5, 3.0, 3.25, 3.5]
    assert gap_of(acked_at, began=2.0, ends=2.1) == 1.5, "from the last one before to the first one after"
    assert gap_of(acked_at, began=3.1, ends=3.2) == 0.25
    assert gap_of(acked_at, began=1.2, ends=3.3) == 1.5, "the harm went on over several"
    assert gap_of(acked_at, began=3.4, ends=3.6) == math.inf, "nothing came any more"
    assert gap_of([], began=1.0, ends=2.0) == math.inf


def test_quantiles_are_values_that_were_seen() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (quantile(values, 0.5), quantile(values, 0.99), quantile(values, 1.0)) == (50.0, 99.0, 100.0)
    assert quantile([0.5], 0.99) == 0.5 and math.isnan(quantile([], 0.5))


def test_the_table_and_the_picture_name_each_kind_once() -> None:
    gaps = [
        Gap("kill-node", "n1", 0.1, 0.0, 0.0),
        Gap("kill-node", "n2", 0.3, 0.0, 0.0),
        Gap("cut-off", "n1", math.inf, 0.0, 0.0),
    ]
    assert [line.split()[:3] for line in table(gaps).splitlines()[1:]] == [
        ["kill-node", "2", "100"],
        ["cut-off", "1", "inf"],
    ]
    picture = draw(gaps)
    assert picture.count('class="name"') == 2 and picture.count('class="bar"') == 3


def test_a_packet_goes_on_when_its_time_has_come_and_others_are_not_held_up() -> None:
    far, near = (bytes(12) + bytes([10, 0, 0, 1, 10, 0, 0, last]) + b"x" for last in (2, 3))
    waiting = DelayedPackets({("10.0.0.1", "10.0.0.2"): 0.04})
    assert waiting.wait_s(1.0) is None
    waiting.add(far, 1.0)
    waiting.add(near, 1.01)
    assert waiting.due(1.01) == [near] and round(waiting.wait_s(1.01) or 0, 3) == 0.03
    assert waiting.due(1.039) == [] and waiting.due(1.041) == [far]


def test_a_read_that_lacks_what_was_acknowledged_before_is_stale() -> None:
    history = History("r/0")
    history.acknowledge(1)
    history.acknowledge(3)
    history.read(3, 3, "node 1")
    history.read(4, 3, "node 1")  # newer, and not acknowledged yet
    assert not history.faults
    history.read(1, 3, "node 2")
    assert history.faults == ["stale read of r/0 at node 2: 1, 3 was acknowledged before"]


def test_a_read_of_what_was_still_on_its_way_is_counted_only() -> None:
    history = History("r/0")
    history.acknowledge(3)
    history.read(2, 3, "node 1")
    assert (history.reads, history.late, history.faults) == (1, 1, [])
