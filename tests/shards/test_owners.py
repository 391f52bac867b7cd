"""Sessions of a journal that is older than owners are, and what sessions are found by. docs/session-journal.md"""

import msgspec
import pytest

from router.subscriber import Subscriber
from router.subscription import Subscription
from rumq.auth.identity import Identity
from rumq.mqtt.errors import MqttFault
from rumq.session.journal import entries as e
from rumq.session.journal.recorder import JournalRecorder, opened_entry
from rumq.session.journal.replayed_state import ReplayedState
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session
from rumq.session.state.session_owner import ANYBODY, Owner, client_id_of, key_of, owner_of

ALICE, TENANT = Owner("alice", ""), Owner(None, "site-7/")


def unowned(registry: Registry, *filters: str) -> Session:
    """A session "pump" as an older rumq left it, with these filters."""
    session = Session("pump", None, personal=False, owner=None)
    session.subscriber.main_subscriptions = {each: Subscription(each) for each in filters}
    registry.restore(session, expires_in=100.0, will_in=None, now=0.0)
    return session


@pytest.fixture
def registry() -> Registry:
    return Registry([], lambda session, will: None, JournalRecorder())


def test_an_older_journal_is_read() -> None:
    old = msgspec.msgpack.encode([["opened", 7, "pump", 5, 100, False], ["will", 7, 3, b""]])
    first, will = e.decode_entries(old)
    assert first == e.Opened(7, "pump", 5, 100, False)
    assert isinstance(will, e.Will) and will.author is None
    replayed = ReplayedState()
    replayed.apply([first])
    assert replayed.sessions[7].owner is None


@pytest.mark.parametrize("owner", [None, ANYBODY, ALICE, TENANT, Owner("", ""), Owner("?", "a/")])
def test_a_journal_says_whose_a_session_is(owner: Owner | None) -> None:
    replayed = ReplayedState()
    entries: list[e.JournalEntry] = [
        opened_entry(Session("pump", None, personal=False, owner=owner), fresh=True)
    ]
    replayed.apply(e.decode_entries(e.encode_entries(entries)))
    assert [saved.owner for saved in replayed.sessions.values()] == [owner]


def test_the_first_who_comes_with_its_client_id_has_a_session_that_nobody_owns(registry: Registry) -> None:
    session = unowned(registry, "a/#")
    assert registry.open("pump", None, personal=False, clean_start=False, owner=ALICE) == (session, True)
    assert (session.owner, session.subscriber.key) == (ALICE, session.key)
    other, present = registry.open("pump", None, personal=False, clean_start=False, owner=Owner("bob", ""))
    assert other is not session and not present
    assert registry.find("pump", ALICE) is session


def test_a_tenant_has_none_that_reaches_out_of_its_mount_point(registry: Registry) -> None:
    session = unowned(registry, "site-7/a/#", "site-8/a/#")
    assert registry.find("pump", TENANT) is None
    assert registry.find("pump", ANYBODY) is session


def test_a_tenant_has_again_what_was_under_its_mount_point(registry: Registry) -> None:
    session = unowned(registry, "site-7/a/#")
    assert registry.find("pump", TENANT) is session


def test_no_two_owners_have_the_same_key() -> None:
    owners = [
        None, ANYBODY, ALICE, TENANT, Owner("", ""), Owner("?", ""), Owner("alice", "site-7/"), Owner("site-7/", ""),
        Owner("\0=alice", ""), Owner("=alice", ""),
    ]  # fmt: skip
    keys = [key_of(client_id, owner) for client_id in ("pump", "pum", "") for owner in owners]
    assert len(set(keys)) == len(keys)
    assert {client_id_of(key) for key in keys} == {"pump", "pum", ""}
    assert key_of("pump", ANYBODY) == "pump"


def test_a_name_that_nobody_has_checked_owns_nothing() -> None:
    assert owner_of(Identity("alice", method="unverified"), "") == ANYBODY
    assert owner_of(Identity("alice", method="password"), "") == ALICE


def test_a_name_that_is_no_text_does_not_come_in() -> None:
    """As a token's claims may have it, and no journal."""
    for who in (Identity("\ud800", method="token"), Identity("a", frozenset({"\udfff"}), "token")):
        with pytest.raises(MqttFault):
            owner_of(who, "")


def test_every_filter_is_looked_at() -> None:
    subscriber = Subscriber("pump", None)
    subscriber.main_subscriptions = {"a": Subscription("a")}
    assert subscriber.plain_filters() == ["a"]
