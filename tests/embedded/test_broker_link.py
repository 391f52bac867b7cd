"""Messages of a link come whole and in order, however the bytes arrive; an end that is gone is seen."""

import json
import os
import socket

import pytest
from hypothesis import given
from hypothesis.strategies import dictionaries, integers, lists, text

from rumq.embedded.broker_link import BrokerLink, LinkClosed, open_pair


@given(lists(dictionaries(text(max_size=5), integers(), max_size=3), max_size=8), integers(1, 50))
def test_messages_come_whole_in_whatever_pieces(messages: list[dict[str, int]], piece_bytes: int) -> None:
    link, other = open_pair()
    sent = b"".join(json.dumps(each).encode() + b"\n" for each in messages)
    found = []
    for start in range(0, len(sent), piece_bytes):
        other.send(sent[start : start + piece_bytes])
        found += link.receive_nowait()
    assert found == messages
    link.close()
    other.close()


def test_what_came_before_the_end_is_still_returned() -> None:
    link, other = open_pair()
    BrokerLink(other).send({"ended": 0})
    other.close()
    assert link.receive_nowait() == [{"ended": 0}]
    with pytest.raises(LinkClosed):
        link.receive_nowait()
    with pytest.raises(LinkClosed):
        link.send({"start": {}})
    link.close()


def test_an_end_is_seen_although_a_forked_copy_holds_the_socket() -> None:
    link, other = open_pair()
    copy = os.dup(link.fileno())  # as after a fork
    link.close()
    assert other.recv(1) == b""
    os.close(copy)
    other.close()


def test_a_reader_never_waits_also_where_the_other_side_of_a_fork_sends() -> None:
    """O_NONBLOCK belongs to the socket, not to the descriptor: two processes would set it for each other."""
    link, other = open_pair()
    copy = BrokerLink(socket.socket(fileno=os.dup(link.fileno())))
    copy.send({"ready": {}})
    assert link.receive_nowait() == []
    for each in (link, copy, other):
        each.close()
