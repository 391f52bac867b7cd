"""A session from an older journal gets its owner with the first client that comes for it. MQTT 5.0, 4.1."""

from router.reader import Group, GroupKey, Reader
from rumq.session.state.session import Counts, Session
from rumq.session.state.session_owner import ANYBODY, Owner, client_id_of, key_of

ALICE = Owner("alice", "site-7/")


def test_a_session_is_known_by_its_client_id_and_its_owner() -> None:
    """A client id is a name within its owner: two owners may both have a "pump"."""
    sessions = [Session("pump", None, personal=False, owner=owner) for owner in (None, ANYBODY, ALICE)]
    assert len({session.key for session in sessions}) == 3
    assert all(session.subscriber.key == session.key for session in sessions)
    assert all(client_id_of(session.key) == "pump" for session in sessions)
    assert Session("pump", None, personal=False).owner == ANYBODY


def test_its_owner_renames_it_everywhere() -> None:
    session = Session("pump", None, personal=False, owner=None)
    subscriber = session.subscriber
    old_key = session.key
    group = Group(GroupKey(frozenset(), False, None), 1)
    main, late, replay = (Reader(number, group, [0], old_key) for number in (1, 2, 3))
    subscriber.main, subscriber.late["a"], subscriber.replays["$log/earliest/a"] = main, late, replay
    session.assign_owner(ALICE)
    assert session.owner == ALICE and session.key == subscriber.key == key_of("pump", ALICE) != old_key
    assert [reader.key for reader in (main, late, replay)] == [session.key] * 3
    assert subscriber.shape_changed, (
        "its groups know it by the old key: No Local would not see its own messages"
    )


def test_a_new_session_has_nothing_and_is_not_durable() -> None:
    session = Session("pump", None, personal=False)
    assert not session.asked and session.window is None and session.will is None and session.link is None
    assert not session.durable and not session.number and not session.ended and not session.guarded
    assert (session.counts.published, session.counts.delivered) == (0, 0)


def test_sessions_count_apart() -> None:
    one, other = Counts(), Counts()
    one.published += 1
    assert other.published == 0
