"""Who creates topics that are expensive to match waits, and nobody else does."""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from router.matching.groups import GroupTable
from router.matching.topic_matching import MATCH_VISITS, UNDER_WAY_MAX
from router.readers.reader import GroupKey
from router.readers.subscription import Subscription
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.rate_limits import BURST_SECONDS
from rumq.shards.write_path.new_topic_budget import FREE_VISITS, QUEUED_SECONDS, NewTopicBudget


class World:
    def __init__(self, **limits: int) -> None:
        self.groups, self.clock = GroupTable(1), SimpleNamespace(monotonic=100.0, now_us=0)
        group = self.groups.private(GroupKey(frozenset()))
        for number in range(500):
            self.groups.add(group, Subscription(f"+/x{number}/+"))
            self.groups.add(group, Subscription("+/" + "/".join("+a"[number >> bit & 1] for bit in range(9))))
        self.limits = Limits(**limits)
        self.budget = NewTopicBudget(self.groups, self.clock, lambda: self.limits)
        self._numbers = itertools.count()

    def expensive_topic(self) -> bytes:
        return b"t%d" % next(self._numbers) + b"/a" * 9

    def create_until_it_waits(self, client: Any) -> None:
        while self.budget.match(client, self.expensive_topic()) is None:
            pass

    def client(self, client_id: str, user: str | None = None, address: str = "192.0.2.1") -> Any:
        identity = SimpleNamespace(user=user)
        return SimpleNamespace(session=SimpleNamespace(key=client_id), identity=identity, address=address)


def test_visits_are_charged_to_the_user_or_the_address() -> None:
    world = World(new_topic_visits_per_second_max=1000)
    ann, bob = world.client("1", "ann"), world.client("2", "bob")
    nobody, neighbour = world.client("3"), world.client("4", address="192.0.2.2")
    world.create_until_it_waits(ann)
    wait = world.budget.match(world.client("5", "ann", "192.0.2.9"), b"cheap")
    assert wait is not None and 0.0 < wait <= 1.5
    assert world.budget.match(bob, b"cheap") is None and world.budget.match(nobody, b"cheap") is None
    world.create_until_it_waits(nobody)
    assert world.budget.match(neighbour, b"cheap") is None
    world.clock.monotonic += 1.5
    assert world.budget.match(ann, b"cheap") is None


def test_topics_that_are_cheap_to_match_cost_no_visits() -> None:
    world = World(new_topic_visits_per_second_max=1)
    client = world.client("1")
    for number in range(1000):
        assert world.budget.match(client, b"plant/%d/temp" % number) is None
    cost = world.groups.match_ahead("plant/7/temp")
    assert cost is not None and cost <= FREE_VISITS


def test_a_client_creates_so_many_topics_a_second() -> None:
    world = World(new_topics_per_second_max=10)
    client, created = world.client("1", "ann"), 0
    while world.budget.match(client, b"t/%d" % created) is None:
        created += 1
    assert created == 10 * BURST_SECONDS + 1
    assert world.budget.match(world.client("2", "ann"), b"t") is None, "it is another client"


@pytest.mark.parametrize("setting", ["new_topics_per_second_max", "new_topic_visits_per_second_max"])
def test_a_limit_of_zero_is_none(setting: str) -> None:
    world = World(**{setting: 0})
    client = world.client("1")
    for _ in range(100):
        assert world.budget.match(client, world.expensive_topic()) is None


def test_a_match_goes_on_in_the_next_turns_and_is_paid_for_once() -> None:
    world = World(new_topic_visits_per_second_max=1000)
    client, topic = world.client("1"), world.expensive_topic()
    world.groups.visits_left, turns = 0, 0
    while (wait := world.budget.match(client, topic)) is not None:
        assert wait == 0.0 and world.groups.visits_left <= 100 // 4
        world.groups.begin_turn(100)
        turns += 1
        assert turns < 200
    spent = world.groups.match_ahead(topic.decode())
    assert turns > 5 and spent is not None and spent >= 75 * (turns - 1), "three quarters of each turn"
    assert world.budget._visits._full_at["address 192.0.2.1"] - 100.0 == pytest.approx(spent / 1000)


def test_a_holder_has_one_match_of_several_turns_at_a_time_and_a_cheap_topic_waits_for_none() -> None:
    world = World(new_topic_visits_per_second_max=0)
    clients = [world.client(str(number)) for number in range(40)]
    topics = [world.expensive_topic() for _ in clients]
    world.groups.visits_left = 0
    waits = [world.budget.match(client, topic) for client, topic in zip(clients, topics, strict=True)]
    assert waits[0] == 0.0 and all(QUEUED_SECONDS < (wait or 0.0) < 1.0 for wait in waits[1:])
    before = world.groups.filters.visits
    assert world.budget.match(clients[1], topics[1]) and world.groups.filters.visits == before, "it is tried once"
    assert [t for t in topics if world.groups.is_under_way(t.decode())] == topics[:1]
    assert world.budget.match(world.client("40"), b"plant/7/temp") is None
    waiting = dict(zip(topics, clients, strict=True))
    for _ in range(1000):
        world.groups.begin_turn(100)
        for topic, client in list(waiting.items()):
            if world.budget.match(client, topic) is None:
                del waiting[topic]
        if not waiting:
            break
    assert not waiting and not world.budget._current


def test_messages_to_known_topics_have_visits_left_however_many_topics_are_new() -> None:
    """After a wildcard subscription they are matched again, within the same turn."""
    world = World(new_topic_visits_per_second_max=0)
    client, topic = world.client("1"), world.expensive_topic()
    for number in range(5):
        world.groups.begin_turn(200)
        assert world.budget.match(client, topic) == 0.0
        assert world.groups.visits_left >= 200 // 4 - MATCH_VISITS
        assert world.groups.route(f"plant/{number}/temp") is not None


def test_what_a_match_has_cost_is_paid_for_by_who_leaves_before_its_end() -> None:
    world = World(new_topic_visits_per_second_max=1000)
    client = world.client("1", "ann")
    world.groups.begin_turn(200)
    assert world.budget.match(client, world.expensive_topic()) == 0.0
    assert world.budget._visits._full_at["user ann"] - 100.0 >= 0.15
    for number in range(200):
        world.groups.begin_turn(10)
        world.groups.begin_turn(10)
        world.budget.match(world.client("2", f"u{number}"), world.expensive_topic())
    assert len(world.budget._current) <= 3 * UNDER_WAY_MAX


def test_matches_that_nobody_asks_for_any_more_make_room() -> None:
    """The attack: clients that leave while their topics are matched."""
    world = World()
    for _ in range(10):
        for _ in range(UNDER_WAY_MAX):
            world.groups.visits_left = 10
            assert world.groups.match_ahead(world.expensive_topic().decode()) is None
        world.groups.begin_turn(10)
        world.groups.begin_turn(10)
    topic, turns = world.expensive_topic().decode(), 0
    while world.groups.match_ahead(topic) is None:
        world.groups.begin_turn(100)
        turns += 1
        assert turns < 200
    assert len(world.groups._under_way) <= UNDER_WAY_MAX


def test_what_was_matched_ahead_is_there_when_the_message_comes_with_what_changed_meanwhile() -> None:
    world = World()
    other = world.groups.private(GroupKey(frozenset()))
    topic = world.expensive_topic().decode()
    spent = world.groups.match_ahead(topic)
    world.groups.add(other, Subscription("t0/#"))
    before = world.groups.filters.visits
    assert spent is not None and spent > FREE_VISITS
    assert world.groups.match_ahead(topic) is not None
    route = world.groups.route(topic)
    assert world.groups.filters.visits == before, "it is not matched again"
    assert route is not None and dict(route) == dict(world.groups.match(topic)) and other in dict(route)
