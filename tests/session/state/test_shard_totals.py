"""What connections have counted is moved once, to their sessions and to the shard."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.mqtt.kernels.wire_state import Wire
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.state.session import Session
from rumq.session.state.shard_totals import ShardTotals
from tests.session.broker import Broker, connected

repeatable = settings(derandomize=True, deadline=None)

COUNT = st.integers(0, 1000)


class Connection:
    def __init__(self) -> None:
        link = connected(Broker()).link
        self.wire: Wire = link.wire
        self.flow: DeliveryWindow = link.flow
        self.counts = Session("c", None, personal=False)
        self.wire.published = self.wire.others = self.wire.answers = self.flow.delivered = 0

    def count(self, published: int, delivered: int, others: int, answers: int) -> None:
        self.wire.published += published
        self.flow.delivered += delivered
        self.wire.others += others
        self.wire.answers += answers


@repeatable
@given(st.lists(st.tuples(st.integers(0, 1), COUNT, COUNT, COUNT, COUNT, st.booleans()), max_size=12))
def test_totals_are_the_sums_however_often_they_are_taken(
    steps: list[tuple[int, int, int, int, int, bool]],
) -> None:
    totals, connections = ShardTotals(), (Connection(), Connection())
    for which, published, delivered, others, answers, is_taken in steps:
        connection = connections[which]
        connection.count(published, delivered, others, answers)
        if is_taken:
            totals.add(connection.wire, connection.flow, connection.counts)
    for connection in connections:
        totals.add(connection.wire, connection.flow, connection.counts)
    published, delivered = sum(step[1] for step in steps), sum(step[2] for step in steps)
    assert (totals.published, totals.delivered) == (published, delivered)
    assert totals.packets_in == published + sum(step[3] for step in steps)
    assert totals.packets_out == delivered + sum(step[4] for step in steps)
    for which, connection in enumerate(connections):
        own = [step for step in steps if step[0] == which]
        assert connection.counts.published == sum(step[1] for step in own)
        assert connection.counts.delivered == sum(step[2] for step in own)


def test_a_shard_begins_with_nothing() -> None:
    totals = ShardTotals()
    assert {name: getattr(totals, name) for name in ShardTotals.__slots__} == dict.fromkeys(ShardTotals.__slots__, 0)
