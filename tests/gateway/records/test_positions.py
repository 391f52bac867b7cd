"""Which record of the log is which message of a request: by content, in the order of sending, each told once."""

from types import SimpleNamespace
from typing import Any

import pytest

from rumq.client.session.messages import Outgoing
from rumq.gateway.records.positions import PositionClaims, PositionSearch
from rumq.mqtt.properties import Properties

P0 = "main/g1/p0"


class Search(PositionSearch):
    """Over a log that is a list: (topic, lsn, offset, payload, qos) of the records of the connection."""

    log: list[tuple[bytes, int, int, bytes, int]]

    def _own(self, view: Any, begin: int) -> Any:
        for topic, lsn, offset, payload, qos in self.log:
            if begin <= lsn < view.end_lsn:
                yield topic, lsn, offset, (payload, qos, False)


def search(messages: list[Outgoing], claims: PositionClaims, end: int, refused: tuple[int, ...] = ()) -> Search:
    views = SimpleNamespace(current=lambda: [SimpleNamespace(name=P0, first_lsn=0, end_lsn=end)])
    records: Any = SimpleNamespace(views=views)
    return Search(records, {P0: 0}, "gateway", claims, messages, dict.fromkeys(refused))


def message(topic: str, payload: bytes, qos: int = 1) -> Outgoing:
    return Outgoing(topic, payload, qos, False, Properties())


def places(found: Search) -> dict[int, int]:
    return {number: each.lsn for number, each in found.found.items()}


def test_messages_are_found_by_their_content_in_the_order_of_sending() -> None:
    made = search([message("a", b"1"), message("a", b"2"), message("a", b"1")], PositionClaims(), 9)
    made.log = [(b"a", 3, 0, b"1", 1), (b"b", 4, 0, b"1", 1), (b"a", 5, 1, b"2", 1), (b"a", 7, 2, b"1", 1)]
    made.look()
    assert places(made) == {0: 3, 1: 5, 2: 7} and made.is_over
    assert made.found[2].offset == 2 and made.found[2].partition == P0


def test_a_record_is_told_to_one_request_only() -> None:
    claims = PositionClaims()
    first, second = (search([message("a", b"1")], claims, 9) for _ in range(2))
    first.log = second.log = [(b"a", 3, 0, b"1", 1), (b"a", 4, 1, b"1", 1)]
    second.look()
    first.look()
    assert (places(second), places(first)) == ({0: 3}, {0: 4})


def test_what_was_refused_is_not_looked_for_and_qos_0_is_not_waited_for() -> None:
    made = search([message("a", b"1"), message("b", b"2"), message("c", b"3", 0)], PositionClaims(), 9, refused=(1,))
    made.log = [(b"b", 1, 0, b"2", 1), (b"a", 2, 0, b"1", 1)]
    assert not made.is_over
    made.look()
    assert made.is_over and places(made) == {0: 2}


@pytest.mark.parametrize("other", [message("a", b"1", 2), message("a", b"x"), message("b", b"1")])
def test_another_message_is_not_taken_for_it(other: Outgoing) -> None:
    made = search([other], PositionClaims(), 9)
    made.log = [(b"a", 3, 0, b"1", 1)]
    made.look()
    assert not made.found and not made.is_over


def test_a_look_begins_where_the_one_before_has_ended() -> None:
    made = search([message("a", b"1"), message("a", b"1")], PositionClaims(), 9)
    made.log = [(b"a", 3, 0, b"1", 1), (b"a", 9, 1, b"1", 1)]
    made.look()
    assert places(made) == {0: 3}
    made.look()
    assert places(made) == {0: 3}, "the log has not grown"
