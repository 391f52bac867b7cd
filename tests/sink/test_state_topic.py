"""What of the state topic counts: the last marker before our own probe, and whose session this is."""

import pytest

from rumq.mqtt.packets import Publish, Suback, Unsuback
from rumq.mqtt.reasons import Reason
from rumq.sink.progress_marker import ProgressMarker
from rumq.sink.state_topic import SUBSCRIBE_ID, StateTopic
from rumq.table.errors import BrokerCannot

NAME, NONCE = "state/p0", "probe"
MARKER = ProgressMarker(3, "open", 0, 10, 0, 0, 1, 2, ("probe",))


def said(payload: bytes, *, retain: bool = False, dup: bool = False) -> Publish:
    return Publish(NAME, payload, 1, retain, dup, 7)


def test_it_is_read_once_our_probe_has_come() -> None:
    state = StateTopic(NAME, NONCE)
    assert state.keeps(said(MARKER.payload(), retain=True)) and not state.is_read
    assert state.keeps(said(NONCE.encode())) and state.is_read
    assert state.marker == MARKER


def test_what_comes_again_is_an_old_one_and_names_the_session() -> None:
    state = StateTopic(NAME, NONCE)
    assert state.keeps(said(b"of an earlier attempt", dup=True))
    assert (state.marker, state.probes()) == (None, ["of an earlier attempt"])


def test_all_but_our_probe_is_acknowledged_once() -> None:
    state = StateTopic(NAME, NONCE)
    marker, probe = said(MARKER.payload(), retain=True), said(NONCE.encode())
    assert state.keeps(marker) and state.keeps(probe)
    assert (state.take_unacknowledged(), state.take_unacknowledged()) == ([marker], [])


def test_what_comes_behind_the_probe_is_acknowledged_at_once_and_changes_nothing() -> None:
    state = StateTopic(NAME, NONCE)
    state.keeps(said(NONCE.encode()))
    assert not state.keeps(said(MARKER.payload())) and state.marker is None


def test_a_broker_that_sends_a_retained_message_late_cannot_be_used() -> None:
    state = StateTopic(NAME, NONCE)
    state.keeps(said(NONCE.encode()))
    with pytest.raises(BrokerCannot, match="retained message behind one"):
        state.keeps(said(MARKER.payload(), retain=True))


def test_answers_to_its_own_subscription_are_taken_and_no_others() -> None:
    state = StateTopic(NAME, NONCE)
    assert state.takes(Suback(SUBSCRIBE_ID, (Reason.GRANTED_QOS_1,))) and state.suback is not None
    assert not state.takes(Suback(SUBSCRIBE_ID, (Reason.GRANTED_QOS_1,)))
    assert not state.takes(Unsuback(1, (Reason.SUCCESS,))) and state.unsuback is None
    assert not state.is_message(Publish("another", b"", 1, False, False, 7))
