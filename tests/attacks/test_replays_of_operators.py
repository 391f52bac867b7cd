"""What the rules let a client receive live, and not from the log, comes by no way of moving its place: neither one that
the client has, nor one that the operator has."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rumq.auth.rules import RuleSet, parse
from rumq.session.flow_control import listener_policy
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard
from tests.shards.admin.conftest import shard
from tests.shards.admin.world import LASTING, ask, publish

__all__ = ["shard"]
ROOT = Path(__file__).parents[2]
FROM_EARLIEST = [(Prop.USER_PROPERTY, ("rumq-from", "earliest"))]
RULES = """
[[rule]]
allow = ["publish", "subscribe"]
topics = ["#"]
[[rule]]
allow = ["replay"]
topics = ["open/#"]
"""


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> RuleSet:
    found = parse(RULES, "rules")
    monkeypatch.setattr(listener_policy.OPEN, "rules", found)
    return found


def subscriber(shard: Shard, *topic_filters: str, properties: list[tuple[int, object]] | None = None) -> Client:
    client = Client(shard, "c", 5, properties=LASTING)
    client.say(wire.subscribe(1, [(each, 1) for each in topic_filters], properties=properties or []))
    return client


def back(shard: Shard) -> Client:
    return Client(shard, "c", 5, properties=LASTING, clean=False)


def by_filter(shard: Shard) -> Client:
    return subscriber(shard, "$log/earliest/#")


def by_property(shard: Shard) -> Client:
    return subscriber(shard, "#", properties=FROM_EARLIEST)


def reset(shard: Shard) -> Client:
    client = subscriber(shard, "#")
    assert ask(shard, "reset", client="c", start="earliest").done == 1
    return client


def reset_of_a_replay(shard: Shard) -> Client:
    client = subscriber(shard, "$log/latest/#")
    assert ask(shard, "reset", client="c", start="earliest").done == 1
    return client


def reset_while_away(shard: Shard) -> Client:
    subscriber(shard, "#").say(wire.disconnect())
    assert ask(shard, "reset", client="c", start="earliest").done == 1
    shard.settle()
    return back(shard)


def reset_before_it_leaves(shard: Shard) -> Client:
    client = reset(shard)
    client.say(wire.disconnect())
    return back(shard)


def reset_by_time(shard: Shard) -> Client:
    client = subscriber(shard, "#")
    assert ask(shard, "reset", client="c", start="-1h").done == 1
    return client


def reset_with_what_was_retained(shard: Shard) -> Client:
    client = subscriber(shard, "#")
    assert ask(shard, "reset", client="c", start="retained@-1s").done == 1
    return client


WAYS = [
    by_filter, by_property, reset, reset_of_a_replay, reset_while_away, reset_before_it_leaves, reset_by_time,
    reset_with_what_was_retained,
]  # fmt: skip


def topics_of(client: Client) -> set[str]:
    return {packet.topic for packet in client.take() if packet.kind == Kind.PUBLISH}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_way_to_another_place_brings_what_may_not_be_replayed(shard: Shard, way: Callable[[Shard], Client]) -> None:
    publish(shard, Client(shard, "p", 5), "open/1", *(f"secret/{n}" for n in range(20)), "open/2")
    shard.settle()
    client = way(shard)
    shard.settle()
    assert topics_of(client) <= {"open/1", "open/2"}
    publish(shard, Client(shard, "q", 5), "open/3")
    shard.settle()
    assert "open/3" in topics_of(client), "and it goes on live"


@pytest.mark.parametrize("topic_filter", ["secret/#", "secret/1"])
def test_a_subscription_that_may_not_be_replayed_at_all_stays_and_the_operator_is_told(
    shard: Shard, topic_filter: str
) -> None:
    publish(shard, Client(shard, "p", 5), "secret/1")
    client = subscriber(shard, topic_filter, "open/#")
    client.take()
    answer = ask(shard, "reset", client="c", start="earliest")
    assert answer.done == 1 and f"forbid the client to replay {topic_filter}" in answer.why
    shard.settle()
    assert topics_of(client) == set()
    publish(shard, Client(shard, "q", 5), "secret/1")
    shard.settle()
    assert topics_of(client) == {"secret/1"}, "live as before"


def test_a_session_that_was_reset_while_away_gets_everything_where_there_are_no_rules_any_more(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(shard, Client(shard, "p", 5), "open/1", "secret/1")
    subscriber(shard, "#").say(wire.disconnect())
    ask(shard, "reset", client="c", start="earliest")
    shard.settle()
    monkeypatch.setattr(listener_policy.OPEN, "rules", None)
    client = back(shard)
    shard.settle()
    assert topics_of(client) == {"open/1", "secret/1"}


def test_every_place_where_a_subscription_is_made_asks_for_its_permit() -> None:
    """A command that makes or moves one is put together in these modules alone, with `authorization` beside it."""
    made = re.compile(r"\bc(?:ommands)?\.(?:Replay|Subscribe|JoinShare)\([^)]")
    found = {
        str(path.relative_to(ROOT)): path.read_text()
        for folder in ("rumq", "router")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if made.search(path.read_text())
    }
    assert found.keys() == {"rumq/session/protocol/subscribe.py", "rumq/shards/admin/actions.py"}
    assert all("authorization.re" in text for text in found.values())
