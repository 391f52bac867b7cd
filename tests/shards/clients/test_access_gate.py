"""Bans by client id, user and address: they end with their time, refuse nobody else, and are bounded."""

import pytest

from rumq.mqtt.errors import MqttFault
from rumq.mqtt.reasons import Reason
from rumq.shards.clients import access_gate
from rumq.shards.clients.access_gate import AccessGate
from tests.shards.bus.world import Hand


@pytest.mark.parametrize(("kind", "name"), [("client", "c"), ("user", "u"), ("address", "::1")])
def test_a_ban_refuses_whom_it_names_until_its_time_is_over(kind: str, name: str) -> None:
    clock = Hand()
    gate = AccessGate(clock)
    assert gate.ban(kind, name, 60.0)
    assert gate.refusal("d", "v", "::2") is None
    refusal = gate.refusal("c", "u", "::1")
    assert refusal is not None
    assert (refusal.reason, refusal.message) == (Reason.BANNED, f"the operator has banned {kind} {name!r}")
    clock.monotonic += 59.9
    assert gate.refusal("c", "u", "::1") is not None
    ((*_, seconds, refused),) = gate.bans()
    assert seconds == pytest.approx(0.1) and refused == 2
    clock.monotonic += 0.1
    assert gate.refusal("c", "u", "::1") is None and gate.bans() == []


def test_a_name_is_banned_as_what_it_is() -> None:
    gate = AccessGate(Hand())
    gate.ban("user", "x", 60.0)
    assert gate.refusal("x", None, "x") is None and gate.refusal("c", "x", "") is not None


def test_an_old_ban_does_not_hide_another_one() -> None:
    clock = Hand()
    gate = AccessGate(clock)
    gate.ban("client", "c", 1.0)
    gate.ban("address", "a", 60.0)
    clock.monotonic += 2.0
    refusal = gate.refusal("c", None, "a")
    assert refusal is not None and "address" in refusal.message


def test_a_lifted_ban_refuses_nobody_and_is_lifted_once() -> None:
    clock = Hand()
    gate = AccessGate(clock)
    gate.ban("client", "c", 60.0)
    assert not gate.unban("user", "c") and gate.unban("client", "c") and not gate.unban("client", "c")
    assert gate.refusal("c", None, "a") is None
    gate.ban("client", "c", 1.0)
    clock.monotonic += 1.0
    assert not gate.unban("client", "c"), "it was over"


def test_bans_are_bounded_one_can_be_made_longer_and_old_ones_make_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(access_gate, "BANS_MAX", 2)
    clock = Hand()
    gate = AccessGate(clock)
    assert gate.ban("client", "a", 5.0) and gate.ban("client", "b", 60.0)
    assert not gate.ban("client", "c", 60.0) and gate.refusal("c", None, "") is None
    assert gate.ban("client", "b", 90.0)
    clock.monotonic += 5.0
    assert gate.ban("client", "c", 60.0)
    assert [(name, seconds) for _, name, seconds, _ in gate.bans()] == [("b", 85.0), ("c", 60.0)]


def test_the_names_of_all_bans_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client id has up to 65,535 bytes, and each snapshot of the journal has every ban."""
    monkeypatch.setattr(access_gate, "NAME_BYTES_MAX", 8)
    clock = Hand()
    gate = AccessGate(clock)
    assert gate.ban("client", "äää", 5.0) and not gate.ban("client", "abc", 60.0)
    assert gate.ban("client", "äää", 5.0) and gate.ban("client", "ab", 60.0), "given anew it counts once"
    assert not gate.ban("client", "c", 60.0) and len(gate.bans()) == 2
    clock.monotonic += 5.0
    assert gate.ban("client", "abcdef", 60.0), "the one that is over has made room"
    assert gate.unban("client", "ab") and gate.refusal("c", None, "a") is None and gate.ban("user", "x", 1.0)
    clock.monotonic += 1.0
    assert gate.refusal("c", "x", "a") is None and gate.ban("user", "xy", 1.0)


def test_a_broker_that_drains_refuses_everybody() -> None:
    gate = AccessGate(Hand())
    gate.is_draining = True
    refusal = gate.refusal("c", None, "a")
    assert refusal is not None and refusal.reason == Reason.SERVER_UNAVAILABLE
    gate.is_draining = False
    assert gate.refusal("c", None, "a") is None


def test_nobody_is_admitted_while_the_leader_hears_no_majority() -> None:
    gate = AccessGate(Hand())
    gate.isolated = lambda: MqttFault("too few answer", Reason.USE_ANOTHER_SERVER, "n2:1883")
    refusal = gate.refusal("c", None, "::1")
    assert refusal is not None and (refusal.reason, refusal.server_reference) == (
        Reason.USE_ANOTHER_SERVER,
        "n2:1883",
    )
    gate.isolated = None
    assert gate.refusal("c", None, "::1") is None
