"""A replay that asks for it is told where the log ended: once, behind every record before that, however it was read."""

from hypothesis import given
from hypothesis import strategies as st

from router import commands as c
from router.effects import ReplayEnded
from router.readers.subscription import Subscription
from router.recovery import Recovery
from tests.router.world import Client, World


def begun(world: World, client: Client, start: str | tuple[str, int] = "earliest", topic_filter: str = "#") -> None:
    world.do(c.Replay(client.subscriber, "asked", Subscription(topic_filter, 1, tells_end=True), start))


def told(world: World) -> int:
    return sum(isinstance(effect, ReplayEnded) for effect in world.retained)


@given(
    partitions=st.integers(1, 3),
    before=st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4), max_size=6),
    credits=st.lists(st.integers(0, 3), max_size=12),
    hot=st.sampled_from([0, 1 << 20]),
)
def test_it_is_told_behind_all_records_before_it(
    partitions: int, before: list[list[str]], credits: list[int], hot: int
) -> None:
    """The client takes them by ones and twos, from memory or from disk, while others are published."""
    world = World(partitions, hot)
    sent = [place for topics in before for place in world.publish(topics, qos=1)]
    world.commit()
    client = world.client("c")
    world.attach(client)
    client.credit = 0
    begun(world, client)

    def got() -> list[tuple[int, int]]:
        return [place for places in client.got["replay"].values() for place in places]

    for credit in credits:
        client.credit = credit
        world.do(c.Ready(client.subscriber))
        while world.cold:
            world.answer_cold()
        for _ in range(len(world.more)):
            world.answer_more()
        if told(world):
            assert set(sent) <= set(got())
        world.publish(["live"], qos=1)
        world.commit()
    world.settle()
    assert told(world) == 1
    assert set(sent) <= set(got())


def test_an_empty_replay_is_told_at_once() -> None:
    world = World(partitions=2)
    world.publish(["a"], qos=1)
    world.commit()
    client = world.client("c")
    world.attach(client)
    begun(world, client, "latest")
    world.settle()
    assert told(world) == 1 and not client.got["replay"]


def test_one_whose_start_is_searched_is_told_once_it_is_found() -> None:
    world = World(partitions=2)
    world.publish(["a", "b"], qos=1)
    world.commit()
    client = world.client("c")
    world.attach(client)
    begun(world, client, ("time", 0))
    while world.more:
        world.answer_more()
    assert not told(world)
    world.settle()
    assert told(world) == 1 and set(client.got["replay"]) == {"a", "b"}


def test_nobody_is_told_who_has_unsubscribed_or_did_not_ask() -> None:
    world = World()
    client = world.client("c")
    world.attach(client)
    begun(world, client)
    world.do(c.RemoveSubscription(client.subscriber, "asked"))
    world.replay(client, "#")
    world.settle()
    assert not told(world) and not world.shard.subscribing.ends.are_expected()


def test_one_that_is_restored_is_told_where_the_log_ends_then() -> None:
    world = World()
    sent = world.publish(["a", "b"], qos=1)
    world.commit()
    client = world.client("c")
    reader = Recovery(world.shard.subscribing).reader(
        client.subscriber, 2, [Subscription("#", 1, tells_end=True)], [0], None, committed_only=True
    )
    client.subscriber.add_reader("asked", reader, is_replay=True)
    world.attach(client)
    world.settle()
    assert told(world) == 1 and sum(map(len, client.got["replay"].values())) == len(sent)
