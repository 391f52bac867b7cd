"""The owner of a session, and the key that the registry finds it by. docs/decisions/0018-a-session-has-an-owner.md"""

import pytest

from rumq.auth.identity import Identity
from rumq.mqtt.errors import MqttFault
from rumq.session.state.session_owner import ANYBODY, Owner, client_id_of, key_of, owner_of

ALICE, TENANT = Owner("alice", ""), Owner(None, "site-7/")


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
