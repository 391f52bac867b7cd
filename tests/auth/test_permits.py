"""Clients with equal permissions share one permit, which is freed with the last of them. docs/guides/security.md."""

import gc

from rumq.auth.permits import Granted, Permits


def granted(*own: str, shared: tuple[str, ...] = ("plant/#",), denied: tuple[str, ...] = ()) -> Granted:
    made = Granted()
    made.add(("publish", "subscribe"), False, list(shared), list(own))
    if denied:
        made.add(("publish",), True, list(denied), [])
    return made


def test_equal_permissions_are_one_object_while_somebody_has_it() -> None:
    permits = Permits(quiet=False)
    one, same, other = (
        permits.permit_for(granted()),
        permits.permit_for(granted()),
        permits.permit_for(granted("device/7")),
    )
    assert one is same and one is not other and len(permits) == 2
    del one, same
    gc.collect()
    assert len(permits) == 1


def test_filters_of_its_own_count_beside_those_that_it_shares() -> None:
    permit = Permits(quiet=False).permit_for(granted("device/7"))
    assert permit.may("publish", "plant/a") and permit.may("publish", "device/7")
    assert not permit.may("publish", "device/8") and not permit.may("retain", "plant/a")


def test_a_deny_takes_precedence() -> None:
    permit = Permits(quiet=True).permit_for(granted(denied=("plant/secret/#",)))
    assert permit.quiet
    assert permit.may("publish", "plant/a") and not permit.may("publish", "plant/secret/a")
    assert permit.reach("publish", "plant/#") == "some"
    assert permit.reach("publish", "plant/secret/b") == "none"
    assert permit.reach("subscribe", "plant/#") == "all"


def test_a_replay_needs_both_permissions() -> None:
    made = granted()
    made.add(("replay",), False, ["plant/a/#"], [])
    permit = Permits(quiet=False).permit_for(made)
    assert [permit.reach("replay", each) for each in ("plant/a/b", "plant/#", "elsewhere")] == [
        "all",
        "some",
        "none",
    ]
    assert permit.live.may_receive("plant/b") and not permit.past.may_receive("plant/b")
    assert permit.past.may_receive("plant/a")
