"""Whatever happens in whatever order: each subscription gets each of its messages exactly once, in the log's order.

Clients come and go, are slow and are ready again; messages are published, shown and committed; reads from disk come
back late. At the end everybody takes everything, and what they got is compared with a plain list."""

import os

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from router import commands as c
from router import delivery
from router.group_membership import SHARED_MAX
from router.matching.scatter import GROUPS_MIN
from tests.router.world import UNLIMITED, Client, World

TOPICS = ["a", "b/1", "b/2", "c"]
NAMES = ["n1", "n2", "n3"]
# Ordinary filters do not overlap, so that each message is expected once.
FILTERS = {"a": ["a"], "b/+": ["b/1", "b/2"], "c/#": ["c"]}
SHARED = ["a", "b/+"]


class Delivery(RuleBasedStateMachine):
    hot = 0
    partitions = 1
    shared_max = SHARED_MAX
    groups_min = GROUPS_MIN

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(delivery, "GROUPS_MIN", self.groups_min)
        self.world = World(self.partitions, self.hot)
        self.world.shard.subscribing.grouping.shared_max = self.shared_max
        self.published: list[tuple[str, tuple[int, int]]] = []
        self.clients = {name: self.world.client(name) for name in NAMES}
        # (client, kind, topic) -> places that it must have got, and those that it may have got as well
        self.wanted: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        self.shared: dict[str, list[tuple[int, int]]] = {}
        self.members: dict[str, set[str]] = {}
        self.gone_with: dict[str, list[tuple[int, int]]] = {}  # what members had whose sessions are over
        self.open: set[tuple[str, str]] = set()

    # The log

    @rule(topics=st.lists(st.sampled_from(TOPICS), min_size=1, max_size=6), qos=st.sampled_from([0, 1]))
    def publish(self, topics: list[str], qos: int) -> None:
        # Those who are subscribed when it is published are to get it: note them before it is shown.
        first = len(self.published)
        before = [*self.wanted]
        self.published += zip(topics, self.world.publish(topics, qos=qos), strict=True)
        for topic, place in self.published[first:]:
            for key in before:
                if key[2] == topic and (key[0], key[1]) in self.open_topics(topic):
                    self.wanted[key].append(place)
            for asked, members in self.members.items():
                if members and topic in FILTERS[asked.split("/", 2)[2]]:
                    self.shared[asked].append(place)

    def open_topics(self, topic: str) -> set[tuple[str, str]]:
        found = set()
        for name, asked in self.open:
            kind, _, topic_filter = asked.partition(":")
            if topic in FILTERS[topic_filter]:
                found.add((name, kind))
        return found

    @rule()
    def commit(self) -> None:
        self.world.commit()

    @precondition(lambda self: self.world.cold)
    @rule()
    def read_from_disk(self) -> None:
        self.world.answer_cold()

    @precondition(lambda self: self.world.searches)
    @rule()
    def find_a_start(self) -> None:
        self.world.answer_search()

    @precondition(lambda self: self.world.more)
    @rule()
    def go_on(self) -> None:
        self.world.answer_more()

    # Clients

    @rule(name=st.sampled_from(NAMES))
    def come_or_go(self, name: str) -> None:
        client = self.clients[name]
        if client.here:
            self.world.detach(client)
        else:
            self.world.attach(client)

    @rule(name=st.sampled_from(NAMES), credit=st.sampled_from([0, 1, 2, 5]))
    def be_slow(self, name: str, credit: int) -> None:
        self.clients[name].credit = credit

    @rule(name=st.sampled_from(NAMES), credit=st.sampled_from([1, 3, UNLIMITED]))
    def be_ready(self, name: str, credit: int) -> None:
        client = self.clients[name]
        client.credit = credit
        if client.here:
            self.world.do(c.Ready(client.subscriber))

    @rule(name=st.sampled_from(NAMES), topic_filter=st.sampled_from(list(FILTERS)))
    def subscribe(self, name: str, topic_filter: str) -> None:
        key = name, f"live:{topic_filter}"
        if key in self.open:
            return
        # What is published but not shown yet is still to come for who subscribes now.
        shown = [feed.visible_lsn for feed in self.world.shard.feeds]
        self.world.subscribe(self.clients[name], topic_filter, qos=1)
        self.open.add(key)
        for topic in FILTERS[topic_filter]:
            self.wanted.setdefault((name, "live", topic), [])
            self.wanted[name, "live", topic] += [
                place for of, place in self.published if of == topic and place[1] >= shown[place[0]]
            ]

    @rule(name=st.sampled_from(NAMES), topic=st.sampled_from(["a"]), offset=st.integers(0, 5))
    def replay_from_an_offset(self, name: str, topic: str, offset: int) -> None:
        key = name, f"replay:{topic}"
        if key in self.open or offset > sum(of == topic for of, _ in self.published):
            return
        self.world.replay(self.clients[name], topic, ("offset", offset))
        self.open.add(key)
        self.wanted[name, "replay", topic] = [place for of, place in self.published if of == topic][offset:]

    @rule(name=st.sampled_from(NAMES), topic_filter=st.sampled_from(list(FILTERS)))
    def replay(self, name: str, topic_filter: str) -> None:
        key = name, f"replay:{topic_filter}"
        if key in self.open:
            return
        self.world.replay(self.clients[name], topic_filter)
        self.open.add(key)
        for topic in FILTERS[topic_filter]:
            self.wanted[name, "replay", topic] = [place for of, place in self.published if of == topic]

    @rule(name=st.sampled_from(NAMES), topic_filter=st.sampled_from(SHARED))
    def share(self, name: str, topic_filter: str) -> None:
        asked = f"$share/g/{topic_filter}"
        members = self.members.setdefault(asked, set())
        if name in members or (not members and asked in self.shared):
            return  # once everybody left, what they had not got is gone: nothing to compare
        shown = [feed.visible_lsn for feed in self.world.shard.feeds]
        self.world.share(self.clients[name], "g", topic_filter)
        if not members:
            self.shared[asked] = [
                place for of, place in self.published if of in FILTERS[topic_filter] and place[1] >= shown[place[0]]
            ]
        members.add(name)

    @rule(name=st.sampled_from(NAMES), data=st.data())
    def unsubscribe(self, name: str, data: st.DataObject) -> None:
        """Nothing comes after it; what was due before may have come or not."""
        mine = sorted(asked for of, asked in self.open if of == name)
        if not mine:
            return
        asked = data.draw(st.sampled_from(mine))
        kind, _, topic_filter = asked.partition(":")
        client = self.clients[name]
        sent = topic_filter if kind == "live" else f"$log/x/{topic_filter}"
        self.world.do(c.RemoveSubscription(client.subscriber, sent))
        self.open.discard((name, asked))
        for topic in FILTERS[topic_filter]:
            self.compare(client, kind, topic, whole=False)
            client.got[kind].pop(topic, None)
            del self.wanted[name, kind, topic]

    @rule(name=st.sampled_from(NAMES), unacknowledged=st.integers(0, 3))
    def end(self, name: str, unacknowledged: int) -> None:
        """The session is over: what it had not acknowledged of a share goes to another member. MQTT-4.8.2-4"""
        client = self.clients[name]
        for members in self.members.values():
            if members == {name}:
                return  # the share would end with it
        given_back = []
        for asked, members in self.members.items():
            if name in members:
                number = client.subscriber.shares[asked].members[client.subscriber].reader.number
                for places in client.got[asked].values():
                    for place in places[len(places) - min(unacknowledged, len(places)) :]:
                        given_back.append((number, *place))
                        places.remove(place)
                members.discard(name)
                self.gone_with.setdefault(asked, []).extend(
                    place for places in client.got[asked].values() for place in places
                )
        self.world.do(c.End(client.subscriber, given_back))
        for kind, topic in [(kind, topic) for of, kind, topic in self.wanted if of == name]:
            self.compare(client, kind, topic, whole=False)
            del self.wanted[name, kind, topic]
        self.open = {(of, asked) for of, asked in self.open if of != name}
        self.clients[name] = self.world.client(name)

    # The comparison

    def compare(self, client: Client, kind: str, topic: str, *, whole: bool) -> None:
        got = client.got[kind].get(topic, [])
        due = self.wanted[client.name, kind, topic]
        assert got == sorted(got), f"{client.name} {kind} {topic}: out of order"
        assert got == (due if whole else due[: len(got)]), f"{client.name} {kind} {topic}"

    def teardown(self) -> None:
        try:
            self.everybody_has_everything()
        finally:
            self.patch.undo()

    def everybody_has_everything(self) -> None:
        for client in self.clients.values():
            if not client.here:
                self.world.attach(client)
        self.world.settle()
        for name, kind, topic in self.wanted:
            self.compare(self.clients[name], kind, topic, whole=True)
        for asked, due in self.shared.items():
            got = [place for client in self.clients.values() for of in client.got[asked].values() for place in of]
            got += self.gone_with.get(asked, [])
            assert sorted(got) == sorted(due), asked
        assert not self.world.gone


class FromMemory(Delivery):
    hot = 1 << 20


class TwoPartitions(Delivery):
    partitions = 2


class GroupsOfTheirOwn(Delivery):
    """As with many subscriptions: the main reader's group changes in place."""

    hot = 1 << 20
    shared_max = 1


class ManyGroups(Delivery):
    """As if they were many: whatever can be is sorted to all of them at once."""

    hot = 1 << 20
    groups_min = 1


EXAMPLES = int(os.environ.get("RUMQ_EXAMPLES", "60"))
for machine in (Delivery, FromMemory, TwoPartitions, GroupsOfTheirOwn, ManyGroups):
    machine.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=50, deadline=None)

TestFromDisk = Delivery.TestCase
TestFromMemory = FromMemory.TestCase
TestTwoPartitions = TwoPartitions.TestCase
TestGroupsOfTheirOwn = GroupsOfTheirOwn.TestCase
TestManyGroups = ManyGroups.TestCase
