"""A shard begins while another one is missing: it serves what is its own, and what concerns the other waits for it."""

import gc
from collections import Counter
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from commitlog.streams import partition_of
from rumq.shards.peers.interest import LOOKS
from tests.simulation.client import Client
from tests.simulation.schedule import Kind, run
from tests.simulation.world import CALM, World

LATE = Kind(is_late=True)
MISSING_SECONDS = 1.0
SCHEDULES = 105
FOUND = (
    5_000_126,  # a packet id that was free again counted as open: what came with it was lost
    5_002_493,  # likewise
    5_101_119,  # a range of a shared group was dropped by the member's shard, and counted as outstanding by its home
    5_200_245,  # a reader that merged into another one just before a kill was sent the same QoS 2 messages again
    5_206_125,  # what a missing shard's log had delivered before a crash was delivered once more
    5_204_523,  # likewise
    5_203_120,  # a group passed records that its home did not know yet
    5_302_171,
    5_302_423,  # a group that was held ended before every shard had said which members it has
    7_607_320,  # an owner was asked without end for what it had lost
    9_201_868,  # a message in the read that ended its client's connection was stored twice
)
HAPPENS = ("shard.missing", "shard.found", "kills", "kills inside", "cuts", "delays", "disconnects")
HERE, MISSING, THIRD = 1, 0, 2  # the shard that begins, the one that is away, the one that goes on


def topic_of(partition: int) -> str:
    return next(f"t{n}" for n in range(99) if partition_of(f"t{n}", 3) == partition)


@pytest.fixture
def world() -> World:
    return World(replace(CALM, shards=3, partitions=3, missing_seconds=MISSING_SECONDS))


def deliver(client: Client) -> None:
    """What a client has said arrives."""
    assert client.stream is not None
    there = client.stream.other
    there.arrive(len(there.coming))


def begin_without(world: World) -> None:
    """The missing shard is dead; the process of this one is killed, and its successor begins."""
    world.machine.kill(MISSING)
    world.machine.kill(HERE)
    world.machine.run(40)
    world.machine.start(HERE)
    world.machine.run(100)
    shard = world.machine.shards[HERE]
    assert shard is not None
    assert not shard.is_ready, "it waits for a moment"
    world.machine.pass_time(MISSING_SECONDS)
    world.machine.run(100)


def test_a_shard_begins_though_another_one_is_missing(world: World) -> None:
    begin_without(world)
    shard = world.machine.shards[HERE]
    assert shard is not None and shard.is_ready
    assert world.machine.counts["shard.missing"] == 1
    client = world.client(HERE, clean=False)
    world.connect(client)
    world.machine.run(200)
    assert client.is_up
    client.publish(topic_of(HERE), 2, retain=False)
    client.publish(topic_of(THIRD), 1, retain=False)
    world.machine.run(400)
    assert [message.acked is not None for message in world.history.messages] == [True, True]


def come_back(world: World) -> None:
    world.machine.start(MISSING)
    world.machine.settle()


def times(world: World) -> dict[int, int]:
    """How often each message is in the log."""
    witness = world.joined(THIRD)
    witness.subscribe("$log/earliest/#", 0)
    world.machine.settle()
    had = world.had(witness)
    return {number: had.count(number) for number in range(len(world.history.messages))}


def stored_and_not_acknowledged(world: World, topic: str, **about: bool) -> Client:
    """A client of the shard that will begin, whose message of QoS 2 is in the log, and no PUBREC came."""
    client = world.joined(HERE, clean=False, **about)
    client.publish(topic, 2, retain=False)
    deliver(client)
    machine = world.machine
    here = machine.shards[HERE]
    assert here is not None
    here.turn()
    machine.freeze(here, 1 << 30)
    machine.run(80)
    return client


def test_a_message_that_the_missing_shard_has_is_not_stored_twice(world: World) -> None:
    """MQTT 5.0, 4.3.3: it was stored, and its publisher was told nothing."""
    client = stored_and_not_acknowledged(world, topic_of(MISSING))
    begin_without(world)
    world.connect(client)
    world.machine.run(300)
    assert client.is_up and world.history.messages[0].acked is None, "nobody knows whether it is stored"
    come_back(world)
    assert world.history.messages[0].acked is not None
    client.publish(topic_of(MISSING), 2, retain=False)
    world.machine.settle()
    assert times(world) == {0: 1, 1: 1}


def test_a_message_sent_again_to_a_shard_that_is_there_waits_for_no_other(world: World) -> None:
    client = stored_and_not_acknowledged(world, topic_of(THIRD))
    begin_without(world)
    world.connect(client)
    world.machine.run(400)
    assert world.history.messages[0].acked is not None
    come_back(world)
    assert times(world) == {0: 1}


def test_an_exchange_with_the_missing_shard_ends_when_it_is_back(world: World) -> None:
    """PUBREL of a message whose packet id is in that shard's log alone: a later message may have the same id."""
    client = world.joined(HERE, clean=False, has_few_ids=True)
    client.publish(topic_of(MISSING), 2, retain=False)
    while world.history.messages[0].acked is None:
        world.machine.run(1)  # and no longer: soon the journal has the packet id
    client.cut()
    begin_without(world)
    world.connect(client)
    world.machine.run(300)
    assert client.is_up
    come_back(world)
    for _ in range(9):  # each of its packet ids
        client.publish(topic_of(MISSING), 2, retain=False)
        world.machine.settle()
    assert times(world) == dict.fromkeys(range(10), 1)


@pytest.mark.parametrize("deaths", [1, 2])
def test_what_is_undecided_stays_so_when_the_shard_dies_again(world: World, deaths: int) -> None:
    client = stored_and_not_acknowledged(world, topic_of(MISSING))
    begin_without(world)
    for _ in range(deaths):
        other = world.joined_now(HERE)
        other.publish(topic_of(HERE), 2, retain=False)
        world.machine.run(100)
        world.machine.pass_time(1.1)
        world.machine.run(200)  # a checkpoint is written
        begin_without(world)
    world.connect(client)
    world.machine.run(200)
    assert world.history.messages[0].acked is None
    come_back(world)
    assert world.history.messages[0].acked is not None
    counts = times(world)
    assert counts[0] == 1 and set(counts.values()) == {1}


def test_a_lasting_subscription_goes_on_where_it_stood(world: World) -> None:
    """What the missing shard stored before it died, and after it is back, comes once and in order."""
    subscriber = world.joined(HERE, clean=False)
    subscriber.subscribe(topic_of(MISSING), 1)
    world.machine.settle()
    publisher = world.joined(THIRD)
    for _ in range(3):
        publisher.publish(topic_of(MISSING), 1, retain=False)
        world.machine.settle()
    subscriber.disconnect()
    world.machine.settle()
    for _ in range(3):
        publisher.publish(topic_of(MISSING), 1, retain=False)
        world.machine.settle()
    begin_without(world)
    world.connect(subscriber)
    world.machine.run(200)
    assert subscriber.is_up and world.had(subscriber) == [0, 1, 2]
    come_back(world)
    publisher.publish(topic_of(MISSING), 1, retain=False)
    world.machine.settle()
    assert world.had(subscriber) == list(range(7))


@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_what_came_with_qos_0_does_not_come_again_however_often_the_shard_dies(world: World, deaths: int) -> None:
    """Also where no run until the last one met the missing shard, whose log has what the first one had delivered."""
    subscriber = world.joined(HERE, clean=False)
    subscriber.subscribe(topic_of(MISSING), 0)
    world.machine.settle()
    publisher = world.joined(THIRD)
    publisher.publish(topic_of(MISSING), 1, retain=False)
    while not world.had(subscriber):
        world.machine.run(1)  # and no longer: soon a checkpoint has it
    subscriber.cut()
    begin_without(world)
    for _ in range(deaths):
        checkpoint(world)
        begin_without(world)
    come_back(world)
    publisher.publish(topic_of(MISSING), 1, retain=False)
    world.machine.settle()
    world.connect(subscriber)
    world.machine.settle()
    assert world.had(subscriber) == [0, 1]


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("has_met", [False, True])
def test_what_a_next_run_wrote_in_the_place_of_what_was_shown_and_lost_is_delivered(
    world: World, is_late: bool, has_met: bool
) -> None:
    """A client left behind a message of QoS 0 that its owner did not live to write. Another one has its lsn when this
    shard begins; has_met: the run before has seen the owner begin anew."""
    machine = world.machine
    subscriber, publisher = world.joined(HERE, clean=False), world.joined(THIRD)
    subscriber.subscribe(topic_of(MISSING), 1)
    machine.settle()
    publisher.publish(topic_of(MISSING), 1, retain=False)
    machine.settle()
    owner = machine.shards[MISSING]
    assert owner is not None
    machine.frozen[owner.workers[0]] = 1 << 30  # its writer
    publisher.publish(topic_of(MISSING), 0, retain=False)
    machine.run(200)
    assert world.had(subscriber) == [0, 1]
    subscriber.disconnect()
    machine.run(200)
    machine.kill(MISSING)
    if not has_met:
        machine.kill(HERE)
    machine.start(MISSING)
    machine.run(200)
    publisher.publish(topic_of(MISSING), 1, retain=False)
    machine.run(200)
    assert world.history.messages[2].acked is not None
    if is_late:
        begin_without(world)
    else:
        machine.kill(HERE)
    machine.settle()
    world.connect(subscriber)
    machine.settle()
    assert world.had(subscriber) == [0, 1, 2]


def test_so_is_what_took_the_place_of_what_a_run_had_shown_that_wrote_nothing_at_all(world: World) -> None:
    """The next run of the owner has another writer epoch all the same, and this shard meets only the one after it."""
    machine = world.machine
    subscriber, publisher = world.joined(HERE, clean=False), world.joined(THIRD)
    subscriber.subscribe(topic_of(MISSING), 1)
    machine.settle()
    machine.kill(MISSING)
    machine.start(MISSING)
    owner, here = machine.shards[MISSING], machine.shards[HERE]
    assert owner is not None and here is not None
    machine.frozen |= dict.fromkeys(owner.workers, 1 << 30)
    machine.run(300)
    publisher.publish(topic_of(MISSING), 0, retain=False)
    machine.run(300)
    assert world.had(subscriber) == [0]
    subscriber.disconnect()
    machine.run(200)
    machine.kill(MISSING)
    machine.freeze(here, 1 << 30)
    machine.start(MISSING)
    machine.run(200)
    publisher.publish(topic_of(MISSING), 1, retain=False)
    machine.run(300)
    assert world.history.messages[1].acked is not None
    machine.kill(MISSING)
    machine.settle()
    world.connect(subscriber)
    machine.settle()
    assert world.had(subscriber) == [0, 1]


@pytest.mark.parametrize("is_led", [False, True])
def test_a_position_is_of_a_run_that_is_no_more_though_those_that_took_its_place_are_as_many(
    world: World, is_led: bool
) -> None:
    """The owner's disk is set back to an older image, and runs twice before this shard meets it.

    is_led: it was a broker alone, and is led in terms now; what the first one wrote no copy has"""
    machine = world.machine
    terms = count(1)

    def start() -> None:
        if is_led:
            machine.terms[MISSING] = next(terms)
        machine.pass_time(2)
        machine.start(MISSING)

    subscriber, publisher = world.joined(HERE, clean=False), world.joined(THIRD)
    subscriber.subscribe(topic_of(MISSING), 1)
    machine.settle()
    machine.kill(MISSING)
    image = machine.image(MISSING)
    for _ in range(2):
        machine.kill(MISSING)
        start()
        machine.settle()
        publisher.publish(topic_of(MISSING), 1, retain=False)
        machine.settle()
    assert world.had(subscriber) == [0, 1]
    subscriber.disconnect()
    machine.settle()
    machine.kill(MISSING)
    machine.set_back(MISSING, image)
    machine.freeze(machine.shards[HERE], 1 << 30)
    for _ in range(2):
        start()
        machine.run(300)
        machine.pass_time(2)  # it begins without this shard
        machine.run(300)
        publisher.publish(topic_of(MISSING), 1, retain=False)
        machine.run(300)
        assert world.history.messages[-1].acked is not None
        machine.kill(MISSING)
    start()
    machine.settle()
    world.connect(subscriber)
    machine.settle()
    assert world.had(subscriber) == [0, 1, 2, 3]


def test_what_is_published_once_the_missing_shard_is_there_counts_as_not_delivered(world: World) -> None:
    """As the next run finds it in the journal."""
    subscriber = world.joined(HERE, clean=False)
    subscriber.subscribe(topic_of(MISSING), 1)
    world.machine.settle()
    publisher = world.joined(THIRD)
    begin_without(world)
    come_back(world)
    publisher.publish(topic_of(MISSING), 1, retain=False)
    world.machine.settle()
    world.machine.kill(HERE)
    world.machine.settle()
    world.connect(subscriber)
    world.machine.settle()
    assert subscriber.session is not None
    assert [(seen.message, seen.dup) for seen in subscriber.session.deliveries] == [(0, False)]


def test_a_subscription_made_meanwhile_gets_what_is_acknowledged_after_suback(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what the missing shard takes from others before this one has met it."""
    begin_without(world)
    client, publisher = world.joined_now(HERE), world.joined_now(THIRD)
    here = world.machine.shards[HERE]
    assert here is not None
    # As after three seconds in a cluster. In one broker the link to a dead shard is up: its supervisor holds it.
    interest: Any = here.parts.clients.broker.delivery._interest
    interest.confirmed.add(topic_of(MISSING))
    interest._away[MISSING] = LOOKS
    with monkeypatch.context() as patched:
        patched.setattr(interest, "_not_waited_for", lambda: {MISSING})
        client.subscribe(topic_of(MISSING), 1)
        world.machine.run(100)
    assert [wish.granted is not None for wish in client.wishes()] == [True]
    world.machine.freeze(here, world.machine.step + 400)
    world.machine.start(MISSING)
    world.machine.run(200)
    publisher.publish(topic_of(MISSING), 1, retain=False)
    world.machine.run(190)
    assert world.history.messages[0].acked is not None
    world.machine.settle()
    assert world.had(client) == [0]


def home_at(world: World, home: int) -> str:
    """A shared subscription whose home is that shard."""
    shard = world.machine.shards[home]
    assert shard is not None
    return next(key for n in range(99) if shard.parts.cluster.placement.home(key := f"$share/g{n}/#") == home)


def test_a_shared_subscription_is_handed_out_once_all_have_said_what_they_had(world: World) -> None:
    """Its home died before it heard that a member of the missing shard has the message."""
    key = home_at(world, HERE)
    away, publisher = world.joined(MISSING, clean=False, lazy=True), world.joined(THIRD)
    away.subscribe(key, 2)
    world.machine.settle()
    other = world.joined(THIRD, clean=False)
    other.subscribe(key, 2)
    world.machine.settle()
    for number in range(4):
        publisher.publish(topic_of(THIRD), 2, retain=False)
        world.machine.run(300)
        assert world.history.messages[number].acked is not None
    before = world.had(away)
    assert before
    begin_without(world)
    world.machine.run(400)
    come_back(world)
    away.lazy = False
    world.connect(away)
    world.machine.settle()
    for client in (away, other):
        client.catch_up()
    world.machine.settle()
    assert sorted(world.had(away) + world.had(other)) == list(range(4))


def checkpoint(world: World) -> None:
    world.machine.pass_time(1.1)
    world.machine.run(300)


def test_an_exchange_that_had_ended_does_not_open_again(world: World) -> None:
    """A run that could not ask the missing shard leaves to the next one from where it is to be asked."""
    client = world.joined(HERE, clean=False, has_few_ids=True)
    client.publish(topic_of(MISSING), 2, retain=False)
    world.machine.settle()
    checkpoint(world)
    begin_without(world)
    checkpoint(world)
    begin_without(world)
    come_back(world)
    world.connect(client)
    world.machine.settle()
    client.publish(topic_of(MISSING), 2, retain=False)
    world.machine.settle()
    assert times(world) == {0: 1, 1: 1}


@pytest.mark.parametrize("steps", [0, 5, 10, 20, 40])
def test_nor_does_it_when_a_shard_dies_soon_after_its_start(world: World, steps: int) -> None:
    """Before another shard, which is there, has said how far its partitions are committed."""
    client = world.joined(HERE, clean=False, has_few_ids=True)
    client.publish(topic_of(MISSING), 2, retain=False)
    world.machine.settle()
    checkpoint(world)
    world.machine.kill(HERE)
    world.machine.run(40)
    world.machine.start(HERE)
    shard = world.machine.shards[HERE]
    assert shard is not None
    while not shard.is_ready:
        world.machine.run(1)
    world.machine.run(steps)
    world.machine.kill(HERE)
    world.machine.settle()
    world.connect(client)
    world.machine.settle()
    client.publish(topic_of(MISSING), 2, retain=False)
    world.machine.settle()
    assert times(world) == {0: 1, 1: 1}


def test_a_message_that_is_stored_is_known_though_its_id_was_used_before(world: World) -> None:
    """Once for the missing shard, and released; then for another one, which has it: sent again, it is not new."""
    client = world.joined(HERE, clean=False, has_few_ids=True)
    client.publish(topic_of(MISSING), 2, retain=False)
    for _ in range(1000):
        world.machine.run(1)
        if not client._out:
            break
    assert not client._out, "the exchange has ended, and no checkpoint was written since"
    client.publish(topic_of(THIRD), 2, retain=False)
    deliver(client)
    here = world.machine.shards[HERE]
    assert here is not None
    here.turn()
    world.machine.freeze(here, 1 << 30)
    world.machine.run(80)
    begin_without(world)
    world.connect(client)
    world.machine.run(300)
    assert client.is_up and world.history.messages[1].acked is None
    come_back(world)
    assert world.history.messages[1].acked is not None
    assert times(world) == {0: 1, 1: 1}


@pytest.mark.parametrize("seed", FOUND)
def test_what_a_schedule_has_found_once_stays_repaired(seed: int) -> None:
    run(seed, kind=LATE)


def test_schedules_in_which_shards_are_missing_keep_every_promise() -> None:
    counts: Counter[str] = Counter()
    gc.disable()  # a schedule is one large cycle, which is collected once it is over
    try:
        for seed in range(SCHEDULES):
            counts += run(seed, kind=LATE)
            if seed % 50 == 49:
                gc.collect()
    finally:
        gc.enable()
    assert not [name for name in HAPPENS if not counts[name]], "all of that happens"
