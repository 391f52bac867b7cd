"""What schedules have found once: the same, with nothing by chance."""

from dataclasses import replace

import pytest

from commitlog.streams import partition_of
from rumq.net.client_placement import home_of
from rumq.shards.bus.messages import ShareBack
from tests.simulation.client import Client
from tests.simulation.schedule import TOPICS
from tests.simulation.world import CALM, World

TOPIC = "a"  # its partition belongs to shard 1
HOME_TOPIC = "a/b"  # and this one's to shard 0


@pytest.fixture
def world() -> World:
    return World()


def share_at(world: World, home: int) -> str:
    """A shared subscription whose home is that shard."""
    return next(key for n in range(99) if home_of(key := f"$share/g{n}/#", world.machine.build.shards) == home)


def deliver(client: Client) -> None:
    """What a client has said arrives."""
    assert client.stream is not None
    there = client.stream.other
    there.arrive(len(there.coming))


@pytest.mark.parametrize("home", [0, 1])
def test_a_message_committed_in_the_turn_in_which_its_client_leaves_stays_in_the_session(
    world: World, home: int
) -> None:
    """MQTT 5.0, 4.4: a session keeps messages of QoS 1 and 2 that its client has not had."""
    member = world.joined(home, clean=False)
    member.subscribe(TOPIC, 1)
    world.machine.settle()
    publisher = world.joined(1)
    publisher.publish(TOPIC, 1, retain=False)
    deliver(publisher)
    owner, here = world.machine.shards[1], world.machine.shards[home]
    assert owner is not None and here is not None
    owner.turn()
    owner.workers[0].run()
    stream = member.stream
    assert stream is not None
    member.disconnect()
    if owner is not here:
        owner.turn()  # what it sends to the other shard arrives there together with DISCONNECT
        for coming in list(world.machine.network.moving):
            coming.arrive(len(coming.coming))
    else:
        stream.other.arrive(len(stream.other.coming))
    here.turn()
    world.machine.settle()
    world.connect(member)
    world.machine.settle()
    assert world.had(member) == [0]


def test_a_subscription_asked_for_while_a_shard_is_away_is_granted_when_it_is_back(world: World) -> None:
    client = world.joined(0)
    world.machine.kill(1)
    world.machine.run(20)
    client.subscribe(TOPIC, 1)
    deliver(client)
    world.machine.settle()
    assert [wish.granted is not None for wish in client.wishes()] == [True]


def test_a_share_survives_its_home_among_three_shards() -> None:
    """Both others have said what members they have before the home has read what it knew: it is not over."""
    world = World(replace(CALM, shards=3, partitions=3))
    key = share_at(world, 2)
    world.joined(2, clean=False)  # so that the home has something to ask before it has begun
    member, publisher = world.joined(1, clean=False), world.joined(0)
    member.subscribe(key, 1)
    world.machine.settle()
    world.machine.kill(2)
    world.machine.run(20)
    for number in range(3):
        publisher.publish(TOPICS[number], 1, retain=False)
    world.machine.run(100)  # while it is away
    world.machine.settle()
    assert set(world.had(member)) == {0, 1, 2}


def test_a_share_whose_home_has_just_begun_does_not_end_with_the_members_that_it_has_heard_of() -> None:
    """The only member of one shard leaves before another shard has said that it has one as well."""
    world = World(replace(CALM, shards=3, partitions=3))
    machine, key = world.machine, share_at(world, 0)
    leaving, staying, publisher = world.joined(1, clean=False), world.joined(2, clean=False), world.joined(1)
    for member in (leaving, staying):
        member.subscribe(key, 1)
        machine.settle()
    machine.kill(0)
    machine.run(40)
    topic = next(f"t{n}" for n in range(99) if partition_of(f"t{n}", 3) == 1)
    publisher.publish(topic, 1, retain=False)
    machine.run(100)
    assert world.history.messages[0].acked is not None
    machine.start(0)
    home = machine.shards[0]
    assert home is not None
    there = machine.shards[2]
    assert there is not None
    peer = there.parts.cluster.peers.others[0]
    while peer.link is None or peer.is_met:
        machine.run(1)
    machine.freeze(there, 1000)  # it has said where it stands, and not yet what members it has
    leaving.lazy = True  # so that what it is sent comes back
    machine.run(300)
    assert home.is_ready
    leaving.unsubscribe(leaving.wishes()[0])
    machine.run(300)
    machine.settle()
    assert world.had(staying) == [0]


def test_what_one_client_does_not_want_any_more_another_is_still_granted(world: World) -> None:
    """The first is gone before its filter is known everywhere, when the second has asked for the same."""
    first, second, publisher = world.joined(0), world.joined(0), world.joined(1)
    here, owner = world.machine.shards
    assert here is not None and owner is not None

    def arrive() -> None:
        for stream in list(world.machine.network.moving):
            stream.arrive(len(stream.coming))

    first.subscribe(TOPIC, 1)
    deliver(first)
    here.turn()
    first.cut()
    arrive()
    owner.turn()  # its answer is on its way
    answers = [stream for stream in world.machine.network.moving if stream.name == "bus"]
    second.subscribe(TOPIC, 1)
    deliver(second)
    here.turn()
    for stream in answers:
        stream.arrive(len(stream.coming))
    here.turn()
    world.machine.settle()
    publisher.publish(TOPIC, 1, retain=False)
    world.machine.settle()
    assert world.had(second) == [0]


@pytest.mark.parametrize("home", [0, 1])
def test_a_share_survives_its_home_from_suback_on(world: World, home: int) -> None:
    """The home has none of its members, and dies before it has written down where everybody stands."""
    key = next(
        k
        for k in (f"$share/g{n}/#" for n in range(9))
        if world.machine.shards[0].parts.cluster.placement.home(k) == home
    )  # type: ignore[union-attr]
    member, publisher = world.joined(1 - home, clean=False), world.joined(1 - home)
    member.lazy = True
    member.subscribe(key, 1)
    while member.wishes()[0].granted is None:
        world.machine.run(1)
    world.machine.kill(home)
    world.machine.run(20)
    publisher.publish(TOPIC, 1, retain=False)
    world.machine.settle()
    assert world.had(member) == [0]


def test_a_share_whose_messages_come_before_its_first_member_has_joined_goes_on(world: World) -> None:
    """Its home begins to hand out before SUBACK, to a shard that gives it back."""
    key = share_at(world, 0)
    member, publisher = world.joined(1), world.joined(0)
    member.subscribe(key, 1)
    for _ in range(200):
        publisher.publish(TOPIC, 1, retain=False)
        world.machine.run(2)
    world.machine.settle()
    before = len(set(world.had(member)))
    publisher.publish(TOPIC, 1, retain=False)
    world.machine.settle()
    assert 200 in world.had(member)
    assert set(world.had(member)) == set(range(200 - before, 201))


def test_a_client_that_acknowledges_nothing_keeps_no_shard_busy(world: World) -> None:
    """Its second subscription waits for the first, which waits for the client."""
    client, publisher = world.joined(0, clean=False, window=1, lazy=True), world.joined(1)
    client.subscribe("+", 1)
    world.machine.settle()
    for _ in range(3):
        publisher.publish(TOPIC, 1, retain=False)
    world.machine.settle()
    client.subscribe("#", 1)
    world.machine.settle()
    assert world.had(client)[0] == 0


@pytest.mark.parametrize("home", [0, 1])
def test_a_will_takes_no_packet_id_of_its_client(world: World, home: int) -> None:
    """Looked for in the log after a crash, the will's would be taken for a message that waits for PUBREL."""
    subscriber = world.joined(0, clean=False)
    subscriber.subscribe(TOPIC, 2)
    client = world.client(home, clean=False)
    world.connect(client, world.history.message(client.client_id, 0, TOPIC, 2, retain=False, is_will=True))
    world.machine.settle()
    client.cut()
    while not world.had(subscriber):
        world.machine.run(1)  # and no longer: soon it is written down which ids wait
    world.machine.lose_power()
    world.machine.settle()
    world.connect(client)
    world.connect(subscriber)
    world.machine.settle()
    client.publish(TOPIC, 2, retain=False)
    world.machine.settle()
    assert world.had(subscriber) == [0, 1]


def test_a_retained_message_that_comes_while_its_shard_begins_is_the_last(world: World) -> None:
    """Its owner is there for other shards before it has read what was retained when it died."""
    witness, publisher = world.joined(1, clean=False), world.joined(0)
    publisher.publish(TOPIC, 1, retain=True)
    world.machine.settle()
    assert witness.session is not None
    world.machine.kill(1)
    publisher.publish(TOPIC, 0, retain=True)
    deliver(publisher)
    world.machine.settle()
    world.connect(witness)
    world.machine.settle()
    witness.subscribe(TOPIC, 0)
    world.machine.settle()
    assert world.had(witness) == [1]


def test_a_message_is_taken_once_though_its_owner_dies_again_before_it_has_said_what_it_has(
    world: World,
) -> None:
    """It is in the log when the owner dies; the successor dies between telling how far the log goes and that."""
    machine = world.machine
    subscriber, publisher = world.joined(0), world.joined(0)
    subscriber.subscribe(TOPIC, 2)
    machine.settle()
    publisher.publish(TOPIC, 2, retain=False)
    deliver(publisher)
    here, owner = machine.shards
    assert here is not None and owner is not None
    here.turn()
    for stream in list(machine.network.moving):
        stream.arrive(len(stream.coming))
    owner.turn()
    owner.workers[0].run()
    machine.kill(1)
    machine.run(20)
    machine.start(1)
    successor = machine.shards[1]
    assert successor is not None
    machine.frozen[successor.workers[1]] = 1 << 30  # its reader, who looks for that
    machine.run(60)
    machine.kill(1)
    machine.settle()
    assert world.had(subscriber) == [0]


def test_what_the_last_member_of_a_shard_has_not_acknowledged_goes_to_another(world: World) -> None:
    """MQTT 5.0, 4.8.2: its session has ended, and its shard has told the home that the member had it."""
    key = share_at(world, 0)
    first, publisher = world.joined(1, lazy=True), world.joined(0)
    first.subscribe(key, 1)
    world.machine.settle()
    publisher.publish(TOPIC, 1, retain=False)
    world.machine.settle()
    second = world.joined(0)
    second.subscribe(key, 1)
    world.machine.settle()
    first.cut()
    world.machine.settle()
    assert (world.had(first), world.had(second)) == ([0], [0])


def test_a_message_of_qos_0_that_was_shown_and_not_written_does_not_come_again(world: World) -> None:
    """MQTT 5.0, 4.3.1: at most once. Its owner dies with it, and its publisher's shard has it still."""
    machine = world.machine
    subscriber, publisher = world.joined(0), world.joined(0)
    subscriber.subscribe(TOPIC, 0)
    machine.settle()
    publisher.publish(TOPIC, 0, retain=False)
    owner = machine.shards[1]
    assert owner is not None
    machine.frozen[owner.workers[0]] = 1 << 30  # its writer
    machine.run(60)
    assert world.had(subscriber) == [0]
    machine.kill(1)
    machine.settle()
    publisher.publish(TOPIC, 0, retain=False)
    machine.settle()
    assert world.had(subscriber) == [0, 1]


def test_what_a_shard_was_handed_of_a_share_is_handed_out_again_when_it_has_died(world: World) -> None:
    machine = world.machine
    member, publisher = world.joined(1, clean=False), world.joined(0)
    member.subscribe(share_at(world, 0), 1)
    machine.settle()
    shard = machine.shards[1]
    machine.frozen[shard] = 1 << 30
    publisher.publish(HOME_TOPIC, 1, retain=False)
    machine.run(60)
    assert world.history.messages[0].acked is not None
    machine.kill(1)
    machine.settle()
    world.connect(member)
    machine.settle()
    assert world.had(member) == [0]


@pytest.mark.parametrize("home", [0, 1])
def test_a_will_does_not_come_to_its_own_client_with_no_local(world: World, home: int) -> None:
    """MQTT-3.8.3-3: it is published by that client id, which has published nothing else."""
    client = world.client(home, clean=False)
    world.connect(client, world.history.message(client.client_id, 0, TOPIC, 1, retain=False, is_will=True))
    world.machine.settle()
    client.subscribe(TOPIC, 1, no_local=True)
    world.machine.settle()
    client.cut()
    world.machine.settle()
    world.connect(client)
    world.machine.settle()
    assert world.had(client) == []


def topics_had(world: World, client: Client) -> list[tuple[int, str]]:
    assert client.session is not None
    return [(seen.message, seen.topic) for seen in client.session.deliveries]


def test_topics_of_two_partitions_do_not_share_an_alias(world: World) -> None:
    """MQTT 5.0, 3.3.2.3.4: both are the first topic of their partition, so their ids are the same."""
    reader = world.joined(0, aliases_max=4)
    reader.subscribe("#", 1)
    publisher = world.joined(0)
    world.machine.settle()
    for topic in (TOPIC, HOME_TOPIC, TOPIC, HOME_TOPIC):
        publisher.publish(topic, 1, retain=False)
        world.machine.settle()
    assert topics_had(world, reader) == [(0, TOPIC), (1, HOME_TOPIC), (2, TOPIC), (3, HOME_TOPIC)]


@pytest.mark.parametrize("aliases_max", [0, 4])
def test_an_id_that_an_owner_gives_out_again_after_its_death_is_the_new_topic_s(aliases_max: int) -> None:
    """A topic that came with messages of QoS 0 only is forgotten with them if its owner dies before the write."""
    world = World(replace(CALM, partitions=1, linger_seconds=10.0))
    readers = [world.joined(1, aliases_max=aliases_max) for _ in range(2)]
    for reader, topic in zip(readers, ("a", "#"), strict=True):
        reader.subscribe(topic, 1)
    publisher = world.joined(1)
    world.machine.settle()
    publisher.publish("a", 0, retain=False)
    world.machine.run(20)
    assert topics_had(world, readers[0]) == [(0, "a")]
    world.machine.kill(0)  # who owns the partition
    world.machine.settle()
    for topic in ("c", "a"):
        publisher.publish(topic, 1, retain=False)
        world.machine.settle()
    assert topics_had(world, readers[0]) == [(0, "a"), (2, "a")]
    assert topics_had(world, readers[1]) == [(0, "a"), (1, "c"), (2, "a")]


@pytest.mark.parametrize("home", [0, 1])
def test_no_local_holds_for_what_a_client_published_before_its_session_began(world: World, home: int) -> None:
    """MQTT-3.8.3-3 speaks of the client id."""
    client = world.joined(home)
    client.publish(TOPIC, 1, retain=False)
    world.machine.settle()
    client.disconnect()
    world.joined(home).publish(TOPIC, 1, retain=False)
    world.connect(client)
    world.machine.settle()
    client.subscribe(f"$log/earliest/{TOPIC}", 1, no_local=True)
    world.machine.settle()
    assert topics_had(world, client) == [(1, TOPIC)]


def test_records_that_their_owner_never_wrote_may_be_given_back_late(world: World) -> None:
    """They stand beyond what the share's home knows of the partition by now: it must not look for them for ever."""
    key = share_at(world, 0)
    members = [world.joined(home) for home in (0, 1)]
    for member in members:
        member.subscribe(key, 1)
    world.machine.settle()
    elsewhere = world.machine.shards[1]
    assert elsewhere is not None
    elsewhere.parts.cluster.peers.others[0].link.say(ShareBack(key, [(1, 50, 60)], False))
    world.machine.settle()
    world.joined(1).publish(TOPIC, 1, retain=False)
    world.machine.settle()
    assert sorted(number for member in members for number in world.had(member)) == [0]


def test_who_dies_after_it_granted_a_filter_that_others_have_not_is_asked_again() -> None:
    world = World(replace(CALM, shards=3, partitions=3))
    topic = next(f"t{n}" for n in range(99) if partition_of(f"t{n}", 3) == 0)
    client = world.joined(2)
    world.machine.kill(1)
    world.machine.run(20)
    client.subscribe(topic, 1)
    deliver(client)
    world.machine.run(60)
    assert [wish.granted for wish in client.wishes()] == [None]
    world.machine.kill(0)
    world.machine.settle()
    assert [wish.granted is not None for wish in client.wishes()] == [True]
    world.joined(2).publish(topic, 1, retain=False)
    world.machine.settle()
    assert world.had(client) == [0]


@pytest.mark.parametrize("home", [0, 1])
def test_a_message_whose_client_leaves_in_the_same_read_is_stored_once(world: World, home: int) -> None:
    """MQTT 5.0, 4.3.3: its publisher sends it again, after a checkpoint and the death of its shard."""
    client = world.joined(home, clean=False)
    client.publish(TOPIC, 2, retain=False)
    client.disconnect()
    world.machine.settle(for_long=True)
    world.machine.kill(home)
    world.machine.settle()
    world.connect(client)
    world.machine.settle()
    assert world.history.messages[0].acked is not None
    witness = world.joined(1)
    witness.subscribe("$log/earliest/#", 0)
    world.machine.settle()
    assert world.had(witness) == [0]


@pytest.mark.parametrize("leaves", ["before it asks", "when it has asked"])
def test_a_group_whose_last_member_leaves_while_another_client_joins_misses_nothing(leaves: str) -> None:
    """Both live in another shard than the group's home. What is acknowledged after SUBACK is the group's."""
    granted = 0
    for steps in range(0, 100, 2):
        world = World()
        machine, key = world.machine, share_at(world, 1)
        leaving, staying, publisher = world.joined(0), world.joined(0, clean=False), world.joined(0)
        leaving.subscribe(key, 1)
        machine.settle()
        publisher.publish(HOME_TOPIC, 1, retain=False)  # whose delivery the journal notes
        if leaves == "before it asks":
            machine.run(20)
            leaving.cut()
        staying.subscribe(key, 1)
        deliver(staying)
        if leaves == "when it has asked":
            machine.run(5)
            leaving.cut()
        machine.run(steps)
        machine.freeze(machine.shards[1], 60)
        first = None
        for _ in range(40):
            if first is None and staying.wishes()[0].granted is not None:
                first = len(world.history.messages)
                granted += 1
            publisher.publish(HOME_TOPIC, 1, retain=False)
            deliver(publisher)
            machine.run(2)
        machine.settle()
        had = {*world.had(leaving), *world.had(staying)}
        later = [] if first is None else world.history.messages[first:]
        assert [m.number for m in later if m.acked is not None and m.number not in had] == []
    assert granted > 25


def test_a_filter_whose_last_reader_leaves_while_another_client_subscribes_misses_nothing() -> None:
    """Both live in another shard than the partition's owner, which hears late of the filter that is wanted again."""
    for steps in range(40):
        world = World()
        machine = world.machine
        leaving, staying, publisher = world.joined(1), world.joined(1, clean=False), world.joined(0)
        owner, elsewhere = machine.shards
        assert owner is not None and elsewhere is not None
        leaving.subscribe(HOME_TOPIC, 1)
        machine.settle()
        staying.subscribe(HOME_TOPIC, 1)
        deliver(staying)
        machine.run(steps)
        leaving.cut()
        while staying.wishes()[0].granted is None:
            machine.run(1)
        for stream in machine.network.of(owner.poller):
            if stream.other.owner is elsewhere.poller:
                machine.freeze(stream, 100)
        publisher.publish(HOME_TOPIC, 1, retain=False)
        machine.run(60)
        assert world.history.messages[0].acked is not None
        machine.settle()
        assert world.had(staying) == [0]
