"""The attack: one client id after the other, under rules with %c. Each left a permit behind, 31 to 63 KiB of it, with
all the filters that are everybody's. A permit is what is a client's own, and goes with the client."""

import gc
import tracemalloc

from rumq.auth.identity import Identity
from rumq.auth.rules import RuleSet, parse

EVERYBODY_S = 200
TEXT = f"""
[[rule]]
allow = ["publish", "subscribe", "replay", "retain", "will"]
topics = [{", ".join(f'"site/{number}/+/#"' for number in range(EVERYBODY_S))}]

[[rule]]
allow = ["publish", "subscribe", "replay", "retain", "will"]
topics = ["device/%c/#"]
"""
EVE = Identity("eve")


def rules() -> RuleSet:
    return parse(TEXT, "rules")


def test_a_permit_goes_with_the_last_who_holds_it() -> None:
    made = rules()
    held = made.permit(EVE, "a")
    assert made.permit(EVE, "a") is held
    sight = held.live
    for number in range(1000):
        made.permit(EVE, f"c{number}")
    assert len(made._permits) == 1
    del held
    assert len(made._permits) == 0, "and no collector is needed for it"
    assert sight.may_receive("device/a/x") and not sight.may_receive("device/b/x")


def test_a_permit_weighs_what_is_the_client_s_own() -> None:
    """With 200 filters for everybody: 4 KiB, and three times the length of a client id."""
    made = rules()
    held = [made.permit(EVE, "first")]
    gc.collect()
    tracemalloc.start()
    try:
        held += [made.permit(EVE, f"{number}".ljust(1024, "x")) for number in range(200)]
        taken = tracemalloc.get_traced_memory()[0] / 200
    finally:
        tracemalloc.stop()
    assert taken < 4096 + 3 * 1024, f"{taken:.0f} bytes a client"


def test_what_is_allowed_is_the_same_however_it_is_kept() -> None:
    permit = rules().permit(EVE, "a")
    for action in ("publish", "subscribe", "replay", "retain", "will"):
        assert permit.may(action, "device/a/x") and permit.may(action, "site/7/x/y")
        assert not permit.may(action, "device/b/x") and not permit.may(action, "site/200/x")
    assert permit.reach("subscribe", "device/a/+") == "all"
    assert permit.reach("subscribe", "device/+/x") == "some"
    assert permit.reach("replay", "device/b/#") == "none"
