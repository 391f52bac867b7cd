"""The view of retained messages: what a filter finds, in pieces, while topics come and go."""

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router import commands as c
from router.effects import DeliverRetained
from router.matching.retained import PIECE, ReplacedTopic, RetainedRecord, RetainedView, Search, packed
from router.matching.sorted_topics import BLOCK_NAMES_MAX, SortedTopics
from rumq.mqtt.topics import matches
from tests.kernel_forms import forms
from tests.router.world import World

LEVELS = st.sampled_from(["a", "b", "", "$s", "a0", "a-"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=4).map("/".join).filter(bool)
FILTERS = (
    st.tuples(st.lists(st.sampled_from(["a", "b", "", "+", "$s", "a0"]), min_size=0, max_size=3), st.booleans())
    .map(lambda f: "/".join([*f[0], "#"] if f[1] or not f[0] else f[0]))
    .filter(bool)
)
SLOW = settings(max_examples=200, deadline=None)


def message(topic: str, lsn: int = 0, partition: int = 0) -> RetainedRecord:
    return RetainedRecord(topic, partition, lsn, 1_000, bytes(32), topic.encode() + b"!")


def filled(topics: list[str]) -> RetainedView:
    view = RetainedView()
    for lsn, topic in enumerate(topics):
        view.put(message(topic, lsn))
    return view


def found(search: Search) -> list[str]:
    topics = []
    while not search.over:
        topics += [one.topic for one in search.next_messages()]
    return topics


@pytest.mark.parametrize("kernel", forms("router.kernels.filters"))
@given(topic_filter=FILTERS, topic=TOPICS)
def test_a_filter_matches_a_name_as_the_rule_says(kernel: ModuleType, topic_filter: str, topic: str) -> None:
    assert bool(kernel.matches(topic_filter.encode(), topic.encode())) is matches(topic_filter, topic)


@SLOW
@given(topics=st.lists(TOPICS, max_size=12, unique=True), asked=FILTERS)
def test_a_search_finds_the_topics_of_a_filter(topics: list[str], asked: str) -> None:
    view = filled(topics)
    assert sorted(found(view.search(asked))) == sorted(t for t in topics if matches(asked, t))
    assert [m.frame for m in view.find("#")] == [t.encode() + b"!" for t in found(view.search("#"))]


def test_what_was_replaced_lately_is_kept_up_to_a_number_of_bytes() -> None:
    replaced = ReplacedTopic()
    for lsn in range(100):
        replaced.add(lsn + 1, b"a", packed(message("a", lsn)), 10 * len(packed(message("a"))))
    assert [one.lsn for lsn in range(102) for one in replaced.find(b"#", lsn)] == [*range(90, 100)]
    assert not replaced.find(b"b", 95)


@SLOW
@given(
    changes=st.lists(st.tuples(st.booleans(), st.integers(0, 3 * BLOCK_NAMES_MAX)), max_size=30),
    step=st.sampled_from([1, -1, 7]),
)
def test_names_stand_in_order(changes: list[tuple[bool, int]], step: int) -> None:
    ordered, model = SortedTopics(), {}
    for number in range(2 * BLOCK_NAMES_MAX):
        name = b"%d" % (number * step % (4 * BLOCK_NAMES_MAX + 1))
        assert ordered.set(name, name) == model.get(name)
        model[name] = name
    for add, number in changes:
        name = b"%d" % number
        if add:
            assert ordered.set(name, b"new") == model.get(name)
            model[name] = b"new"
        else:
            assert ordered.pop(name) == model.pop(name, None)
        assert ordered.get(name) == model.get(name)
    names, values = [], []
    page = ordered.page(b"", after=False)
    while page[0]:
        names += page[0]
        values += page[1]
        page = ordered.page(names[-1], after=True)
    assert names == sorted(model) and ordered.count == len(model)
    assert values == [model[name] for name in names]


def test_a_search_goes_on_while_topics_come_and_go() -> None:
    view = filled([f"t/{number:05}" for number in range(3000)])
    search = view.search("t/+", below=[3000])
    got = [one.topic for one in search.next_messages()]
    assert 0 < len(got) < 3000
    for number in range(0, 3000, 2):
        view.drop(message(f"t/{number:05}", number))
    view.put(message("t/02999", 5000))  # comes live
    view.put(message("t/99999", 5001))
    later = found(search)
    stayed = {f"t/{number:05}" for number in range(1, 2999, 2)}
    assert stayed <= {*got, *later} and len({*got, *later}) == len(got) + len(later)
    assert not {"t/02999", "t/99999"} & {*later}


def test_a_narrow_filter_looks_at_few_of_many_topics() -> None:
    view = filled([f"plant/{number:05}/temp" for number in range(20_000)])
    for asked, most in (
        ("plant/00007/temp", 1),
        ("plant/00007/#", 600),
        ("plant/00007/+", 600),
        ("x/#", 600),
    ):
        search = view.search(asked)
        assert len(found(search)) == ("x" not in asked)
        assert search.looked <= most, asked


def test_a_message_that_was_replaced_is_not_dropped_for_its_forerunner() -> None:
    view = filled(["a"])
    old = view.find("a")[0]
    view.put(message("a", 7))
    view.drop(old)
    assert [one.lsn for one in view.find("a")] == [7]
    view.drop(message("a", 7))
    assert not len(view) and view.bytes == 0


def test_subscribing_finds_nothing_yet_however_much_there_is() -> None:
    """What a filter matches is looked for when the client can take it."""
    world = World(hot=1 << 20)
    client = world.client("c")
    world.attach(client)
    topics = [f"t/{number}" for number in range(2000)]
    world.publish(topics, qos=0, retain=True)
    for topic_filter in ("t/#", "+/+"):
        world.subscribe(client, topic_filter, retained=True)
    first, second = world.retained
    assert isinstance(first, DeliverRetained) and first.search.looked == 0
    world.publish(topics[:5], qos=0, retain=True)  # these it gets live
    taken = found(first.search)  # type: ignore[arg-type]
    assert sorted(taken) == sorted(topics[5:])
    world.do(c.RemoveSubscription(client.subscriber, "+/+"))
    assert found(second.search) == []  # type: ignore[arg-type]


class Half:
    """Permits every second topic of "t/0", "t/1" ..."""

    def may_receive(self, topic: str) -> bool:
        return int(topic.removeprefix("t/")) % 2 == 0


@pytest.mark.parametrize("is_late", [False, True])
def test_a_search_under_way_finds_what_is_permitted_by_then(is_late: bool) -> None:
    """Rules may change while a client takes a million retained messages."""
    world = World(hot=1 << 20)
    client = world.client("c")
    world.attach(client)
    world.publish([f"t/{number}" for number in range(2000)], qos=0, retain=True)
    if is_late:
        world.subscribe(client, "other")
        main = client.subscriber.main
        assert main is not None
        main.group.live[0].discard(main)
    world.subscribe(client, "t/#", retained=True)
    assert ("t/#" in client.subscriber.late) is is_late
    search = world.retained[0].search
    taken = [one.topic for _ in range(2) for one in search.next_messages()]
    assert any(int(topic[2:]) % 2 for topic in taken)
    world.do(c.ChangePermits(client.subscriber, {"t/#": Half()}))
    assert not any(int(topic[2:]) % 2 for topic in found(search))  # type: ignore[arg-type]


def test_what_other_shards_had_retained_is_given_as_it_is_permitted_by_then() -> None:
    world = World(hot=1 << 20)
    client = world.client("c")
    world.attach(client)
    world.subscribe(client, "t/#")
    asked = client.subscriber.main_subscriptions["t/#"]
    world.do(c.ChangePermits(client.subscriber, {"t/#": Half()}))
    messages = [message(f"t/{number}", number) for number in range(600)]
    world.do(c.RetainedFound(client.subscriber.main, asked, messages))  # type: ignore[arg-type]
    given = world.retained[0].search
    assert [one.topic for one in given.next_messages()] == [f"t/{number}" for number in range(0, PIECE, 2)]
    world.do(c.ChangePermits(client.subscriber, {"t/#": None}))
    assert len(found(given)) == 600 - PIECE  # type: ignore[arg-type]
