"""A session from an older journal gets its owner with the first client that comes for it. MQTT 5.0, 4.1."""

import pytest

from router.readers.reader import Group, GroupKey, Reader
from rumq.session.state.session import Session
from rumq.session.state.session_owner import ANYBODY, Owner, client_id_of, key_of
from rumq.session.state.subscribed_filters import NO_FILTERS

ALICE = Owner("alice", "site-7/")


def test_a_session_is_known_by_its_client_id_and_its_owner() -> None:
    """A client id is a name within its owner: two owners may both have a "pump"."""
    sessions = [Session("pump", None, personal=False, owner=owner) for owner in (None, ANYBODY, ALICE)]
    assert len({session.key for session in sessions}) == 3
    assert all(session.own_subscriber().key == session.key for session in sessions)
    assert all(client_id_of(session.key) == "pump" for session in sessions)
    assert Session("pump", None, personal=False).owner == ANYBODY


def test_its_owner_renames_it_everywhere() -> None:
    session = Session("pump", None, personal=False, owner=None)
    subscriber = session.own_subscriber()
    old_key = session.key
    group = Group(GroupKey(frozenset(), False, None), 1)
    main, late, replay = (Reader(number, group, [0], old_key) for number in (1, 2, 3))
    subscriber.main = main
    subscriber.add_reader("a", late, is_replay=False)
    subscriber.add_reader("$log/earliest/a", replay, is_replay=True)
    session.assign_owner(ALICE)
    assert session.owner == ALICE and session.key == subscriber.key == key_of("pump", ALICE) != old_key
    assert [reader.key for reader in (main, late, replay)] == [session.key] * 3
    assert subscriber.shape_changed, "its groups know it by the old key: No Local would not see its own messages"


def test_a_new_session_has_nothing_and_is_not_durable() -> None:
    session = Session("pump", None, personal=False)
    assert not session.asked and session.window is None and session.will is None and session.link is None
    assert not session.durable and not session.number and not session.ended and not session.guarded
    assert (session.published, session.delivered) == (0, 0)


def test_sessions_have_filters_publishers_and_windows_of_their_own() -> None:
    """What most sessions never have is shared or absent until one of them needs it."""
    one, other = Session("one", None, personal=False), Session("other", None, personal=False)
    one.own_filters().add("a/#")
    one.own_publishers(2)[1] = 7
    window = one.open_window(10)
    assert list(one.asked) == ["a/#"] and one.publishers == [0, 7] and one.window is window
    assert one.open_window(20) is window, "messages are in flight in it"
    assert not other.asked and other.publishers is None and other.window is None
    with pytest.raises(TypeError):
        other.asked.add("b/#")
    assert not NO_FILTERS
