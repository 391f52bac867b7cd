"""One session after a crash is what its journal entries say, in their order. docs/reference/session-journal.md."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from rumq.session.journal import entries as e
from rumq.session.journal.replayed_session import ReplayedSession
from rumq.session.journal.replayed_state import ReplayedState


def replayed(*entries: e.JournalEntry) -> ReplayedSession:
    state = ReplayedState()
    state.apply([e.SessionOpened(7, "pump", 5, 60, False, "", None), *entries])
    return state.sessions[7]


def subscribed(kind: str = "main", reader: int = 1, asked: str = "a", *cursors: int) -> e.Subscribed:
    return e.Subscribed(7, asked, asked, 1, False, False, 0, kind, reader, list(cursors) or [5])


def sent(first: int, states: bytes, lsns: Iterable[int], reader: int = 1) -> e.Sent:
    return e.Sent(7, reader << 6, first, states, b"".join(lsn.to_bytes(8, "little") for lsn in lsns))


def acknowledged(*acks: tuple[int, int]) -> e.Acknowledged:
    return e.Acknowledged(7, b"".join((head << 16 | pid).to_bytes(4, "little") for head, pid in acks))


def test_messages_in_flight_keep_their_packet_ids_and_states() -> None:
    """MQTT-4.4.0-1."""
    session = replayed(subscribed(), sent(0, bytes([1, 2, 1]), [5, 6, 7]), acknowledged((0x40, 1), (0x50, 2)))
    assert session.window is not None
    assert list(session.window.waiting()) == [(2, 3, 64, 6), (3, 1, 64, 7)]
    assert session.cursors[1] == [8], "what was sent moves its reader's cursor"


def test_a_message_that_the_client_refused_is_in_flight_no_more() -> None:
    """MQTT 5.0, 4.4: PUBREC with a reason code of 0x80 or more."""
    session = replayed(subscribed(), sent(0, bytes([2]), [5]), acknowledged((0, 1)))
    assert session.window is not None and session.window.in_flight == 0


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3)), max_size=30))
def test_inbound_packet_ids_are_open_until_as_many_pubrel_as_messages(steps: list[tuple[bool, int]]) -> None:
    """MQTT-4.3.3-9 and -10: the tags of the log come after the journal was read."""
    messages = [packet_id for is_message, packet_id in steps if is_message]
    count, releases = dict.fromkeys((1, 2, 3), 0), list[tuple[int, int]]()
    for is_message, packet_id in steps:
        if is_message:
            if count[packet_id]:  # a client uses an id again only once it is released
                messages.remove(packet_id)
                continue
            count[packet_id] += 1
        elif count[packet_id]:
            count[packet_id] -= 1
            releases.append((0x62, packet_id))
    state = ReplayedState()
    state.apply([e.SessionOpened(7, "pump", 5, 60, False, "", None), e.OpenPacketIds(7, b""), acknowledged(*releases)])
    session = state.sessions[7]
    for packet_id in messages:
        state.apply_tag({"pump": [session]}, "pump", packet_id)
    assert session.qos2_open == {packet_id for packet_id in count if count[packet_id]}


def test_a_tag_of_another_session_with_the_same_client_id_changes_nothing() -> None:
    state = ReplayedState()
    state.apply([e.SessionOpened(7, "pump", 5, 60, False, "", None)])
    session = state.sessions[7]
    state.apply_tag({"pump": [session]}, "pump", 99 << 16 | 1)
    assert not session.qos2_open
    state.apply_tag({"pump": [session]}, "pump", 8 << 16 | 1)  # `tag_of(7)`
    assert session.qos2_open == {1} and session.qos2_changed


def test_a_late_reader_s_subscription_merges_into_the_main_one() -> None:
    session = replayed(subscribed("late", 2, "b", 9), e.ReaderMerged(7, "b", 1))
    assert (session.subscriptions["b"].kind, session.subscriptions["b"].reader) == ("main", 1)
    assert 2 not in session.cursors


def test_what_a_late_reader_was_sent_is_not_sent_again_by_the_main_one() -> None:
    """Both had had everything when they merged; what a checkpoint has not written yet is known by what was sent."""
    late = [subscribed("main", 1, "a", 0, 3), subscribed("late", 2, "b", 0, 5)]
    session = replayed(*late, sent(0, b"\2\2", [0, 1], reader=2), e.ReaderMerged(7, "b", 1))
    assert session.cursors == {1: [2, 5]}


def test_a_replay_has_cursors_once_its_start_was_found() -> None:
    entry = subscribed("replay", 2, "b", 0)
    pending = e.Subscribed(*(getattr(entry, name) for name in entry.__struct_fields__[:10]), ("earliest", 0))
    assert replayed(pending).starts == {2: ("earliest", 0)}
    session = replayed(pending, e.ReplayPlaced(7, 2, [4]))
    assert session.cursors[2] == [4] and not session.starts


def test_unsubscribe_removes_the_reader_with_its_last_subscription() -> None:
    session = replayed(subscribed(), subscribed("main", 1, "b"), e.Unsubscribed(7, "a"))
    assert list(session.subscriptions) == ["b"] and 1 in session.cursors
    session = replayed(subscribed(), e.Unsubscribed(7, "a"))
    assert not session.subscriptions and not session.cursors


def test_a_client_that_left_has_its_exact_positions() -> None:
    session = replayed(subscribed(), e.Left(7, 123, 30, {1: [42]}, [43]))
    assert (session.attached, session.left_us, session.expiry_seconds) == (False, 123, 30)
    assert session.cursors == {1: [42]} and session.redelivered_below == [43]


def test_the_last_will_counts_and_an_empty_one_deletes_it() -> None:
    assert replayed(e.WillEntry(7, 0, b"x"), e.WillEntry(7, 5, b"y")).will == e.WillEntry(7, 5, b"y")
    assert replayed(e.WillEntry(7, 0, b"x"), e.WillEntry(7, 0, b"")).will is None
