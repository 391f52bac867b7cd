"""What an answer on one connection means for another, whatever shards their clients live in:
docs/explanation/guarantees.md."""

from collections.abc import Callable, Iterator
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from router.commands import GoOn
from router.effects import ReportShareReady
from router.shard import ShardRouter
from rumq.loop.stage import Stage
from rumq.shards.turn.turn import STEPS_A_TURN, StagesInOrder
from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Peer
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client, Shard

ROUNDS = 20  # with client ids that lead to each pair of shards


@pytest.fixture(scope="module", params=[1, 2])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rumqd]:
    broker = Rumqd(tmp_path_factory.mktemp("broker") / "data", "--set", f"shards.count={request.param}")
    broker.start()
    yield broker
    broker.end()


@pytest.fixture(params=range(ROUNDS))
def pair(request: pytest.FixtureRequest, broker: Rumqd) -> Iterator[tuple[Peer, Peer, str]]:
    """A publisher, a subscriber, and a topic of theirs alone."""
    with Peer(broker.address) as publisher, Peer(broker.address) as subscriber:
        publisher.connect(f"publisher-{request.param}")
        subscriber.connect(f"subscriber-{request.param}")
        yield publisher, subscriber, f"{request.node.name}/{request.param}"


@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_acknowledged_before_a_subscribe_does_not_come(pair: tuple[Peer, Peer, str], qos: int) -> None:
    publisher, subscriber, topic = pair
    publisher.publish(topic, b"before", qos)
    subscriber.subscribe(topic, qos=qos)
    publisher.publish(topic, b"after", qos)
    assert subscriber.payloads(1) == [b"after"]
    subscriber.expect_silence()


def test_what_is_published_after_suback_comes(pair: tuple[Peer, Peer, str]) -> None:
    """At any QoS."""
    publisher, subscriber, topic = pair
    subscriber.subscribe(topic)
    publisher.publish(topic, b"after")
    assert subscriber.payloads(1) == [b"after"]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_retained_message_that_was_acknowledged_is_there_for_a_subscribe(
    pair: tuple[Peer, Peer, str], qos: int
) -> None:
    publisher, subscriber, topic = pair
    publisher.publish(topic, b"kept", qos, retain=True)
    subscriber.subscribe(topic)
    message = subscriber.message()
    assert (message.payload, message.retain) == (b"kept", True)


def test_what_is_published_after_unsuback_does_not_come(pair: tuple[Peer, Peer, str]) -> None:
    publisher, subscriber, topic = pair
    subscriber.subscribe(topic)
    subscriber.unsubscribe(topic)
    publisher.publish(topic, b"after", 1)
    subscriber.expect_silence()


# One turn of a shard, without sockets


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


def test_messages_of_one_turn_are_one_chunk_of_their_partition(shard: Shard) -> None:
    clients = [Client(shard, f"c{n}", 5) for n in range(3)]
    main = shard.store.partitions[1]
    before = main.next_lsn
    for client in clients:
        packet = wire.publish("t", b"x")
        client.link.receive(packet, 0, len(packet))
    assert main.next_lsn == before, "nothing is appended while a turn reads"
    shard.parts.turn.end_turn()
    assert main.next_lsn == before + 3
    shard.settle()
    (chunk,) = main.cold_read(before, 1).run()  # type: ignore[attr-defined]
    assert chunk.count == 3


def test_what_was_published_first_is_there_before_a_subscription_of_the_same_turn(shard: Shard) -> None:
    publisher, reader = Client(shard, "p", 5), Client(shard, "r", 5)
    for client, packet in (
        (publisher, wire.publish("t", b"before")),
        (reader, wire.subscribe(1, [("t", 0)])),
        (publisher, wire.publish("t", b"after")),
    ):
        client.link.receive(packet, 0, len(packet))
    shard.settle()
    assert [each.payload for each in reader.take() if each.kind is Kind.PUBLISH] == [b"after"]


def test_an_effect_s_command_is_carried_out_in_the_same_turn_and_an_endless_chain_is_cut(
    shard: Shard,
) -> None:
    turn = shard.parts.turn
    steps: list[int] = []

    class Endless(ShardRouter):
        """A router each of whose steps asks for another one."""

        def step(self, commands: list[Any]) -> list[Any]:
            steps.append(len(commands))
            turn._commands.put(commands[0])
            return [ReportShareReady("k")]

    carried: list[object] = []
    turn.steps.effects.handle({ReportShareReady: carried.append})
    turn.steps._router, router = Endless([]), turn.steps._router
    turn._commands.put(SimpleNamespace())  # type: ignore[arg-type]
    turn.steps.step()
    turn.steps._router = router
    turn._commands.take()
    assert steps == [1] * STEPS_A_TURN and len(carried) == STEPS_A_TURN


def test_stages_wait_a_moment_while_only_qos_0_is_delivered(shard: Shard) -> None:
    turn, ran = shard.parts.turn, []
    reader, publisher = Client(shard, "reader", 5), Client(shard, "publisher", 5)
    reader.say(wire.subscribe(1, [("t", 0)]))
    reader.take()
    ran_one = Noted(lambda: ran.append(1), lambda: shard.monotonic + 9.0)
    turn.stages.connect(StagesInOrder(each=(ran_one,), deadlines=(ran_one,)))
    turn.stages.seconds = 0.001

    def stages_run_with(packet: bytes) -> bool:
        ran.clear()
        turn.begin_turn()
        publisher.link.receive(packet, 0, len(packet))
        turn.end_turn()
        return bool(ran)

    message = wire.publish("t", b"1")
    assert stages_run_with(message)
    assert turn.seconds_to_next_deadline() > 1.0
    assert not stages_run_with(message), "they have just run"
    assert 0.0 < turn.seconds_to_next_deadline() <= 0.001
    assert stages_run_with(wire.publish("t", b"1", 1, 7)), "somebody waits for an acknowledgement"
    assert not stages_run_with(message)
    assert stages_run_with(wire.subscribe(9, [("u", 0)])), "a command is more than a message"
    shard.monotonic += 0.002
    assert stages_run_with(message)
    got = [each.payload for each in reader.take() if each.kind is Kind.PUBLISH]
    assert got == [b"1"] * 2, "those behind the one of QoS 1 wait for its group"


def test_a_quiet_turn_runs_stages_only_when_one_is_due_or_something_is_left_to_do(shard: Shard) -> None:
    turn, ran, due = shard.parts.turn, [], [shard.monotonic + 9.0]
    ran_one = Noted(lambda: ran.append(1), lambda: due[0])
    turn.stages.connect(StagesInOrder(each=(ran_one,), deadlines=(ran_one,)))

    def stages_run() -> bool:
        ran.clear()
        turn.begin_turn()
        turn.end_quiet_turn()
        return bool(ran)

    assert stages_run(), "nobody has asked yet when one is due"
    before = turn.seconds_to_next_deadline()
    assert not stages_run() and turn.seconds_to_next_deadline() == before > 0.0
    shard.monotonic += before / 2
    assert not stages_run() and turn.seconds_to_next_deadline() == pytest.approx(before / 2)
    shard.parts.timers.next_turn(lambda: None)
    turn._was_quiet = False  # as after the turn in which it was asked for
    assert turn.seconds_to_next_deadline() == 0.0
    assert stages_run() and turn.seconds_to_next_deadline() > 0.0
    turn._ready.add(Link("one", fails=False))
    assert stages_run() and turn.seconds_to_next_deadline() > 0.0
    turn._commands.put(GoOn())
    assert stages_run() and turn.seconds_to_next_deadline() > 0.0
    assert not stages_run()
    shard.monotonic += 9.0
    assert stages_run()


def test_stages_that_go_by_the_clock_run_once_a_deadline_of_theirs_or_of_a_timed_call_has_come(shard: Shard) -> None:
    turn, due, ran = shard.parts.turn, [shard.monotonic + 9.0], list[str]()
    timed = Noted(lambda: ran.append("timed"), lambda: due[0])
    turn.stages.connect(StagesInOrder(timed=(timed,), each=(Noted(lambda: ran.append("each")),)))

    def stages_run() -> list[str]:
        ran.clear()
        turn.begin_turn()
        turn.end_turn()
        return list(ran)

    assert stages_run() == ["timed", "each"] == stages_run(), "nobody has asked when one is due: it may be now"
    assert 1.0 < turn.seconds_to_next_deadline() <= 9.0
    assert stages_run() == ["each"]
    assert stages_run() == ["timed", "each"], "the turn before may have set an earlier one, and nobody has asked"
    turn.seconds_to_next_deadline()
    shard.monotonic += 9.0
    assert stages_run() == ["timed", "each"]


def test_a_timed_call_of_a_turn_that_left_its_stages_out_is_made_in_time(shard: Shard) -> None:
    turn, called = shard.parts.turn, list[float]()
    turn.stages.seconds = 0.001
    publisher = Client(shard, "publisher", 5)
    publisher.say(wire.publish("t", b"1"))
    for later in (0.0, 0.5, 3.0):
        turn.begin_turn()
        turn.end_turn()
        turn.seconds_to_next_deadline()
        began = shard.monotonic
        turn.begin_turn()
        shard.parts.timers.later(later, lambda: called.append(shard.monotonic))
        packet = wire.publish("t", b"1")
        publisher.link.receive(packet, 0, len(packet))
        turn.end_turn()
        assert turn.stages.are_waiting and not called
        while not called and shard.monotonic < began + 10.0:
            shard.monotonic += turn.seconds_to_next_deadline()
            turn.begin_turn()
            turn.end_turn()
        assert called.pop() == pytest.approx(began + later, abs=0.002)


def test_stages_are_not_left_out_while_much_is_published_that_nobody_waits_for(shard: Shard) -> None:
    """They hand it to the disk, and hold back who sends too much. Here 132,000 bytes come, and 64 KiB may wait."""
    turn = shard.parts.turn
    turn.stages.seconds = 1.0
    publisher = Client(shard, "publisher", 5)
    packet = wire.publish("t", bytes(1000))
    waiting = list[bool]()
    turn.begin_turn()
    turn.end_turn()
    for _ in range(132):
        turn.begin_turn()
        publisher.link.receive(packet, 0, len(packet))
        turn.end_turn()
        waiting.append(turn.stages.are_waiting)
    assert 1 <= waiting.count(False) <= 2 and waiting[0]


@pytest.mark.parametrize("due_seconds", [15.0, 20.0])
def test_a_silent_client_and_a_session_that_expires_are_not_forgotten_between_turns_that_have_something_to_do(
    shard: Shard, due_seconds: float
) -> None:
    """Turns ask for the next deadline, as the loop does, and each brings messages."""
    publisher = Client(shard, "publisher", 5)
    if due_seconds == 15.0:
        silent = Client(shard, "silent", 5, keep_alive=10)
    else:
        Client(shard, "gone", 5, properties=[(Prop.SESSION_EXPIRY, 20)]).link.lost("test")
    turn, began, name = shard.parts.turn, shard.monotonic, "client.lost" if due_seconds == 15.0 else "session.expired"
    shard.events.clear()
    while not shard.told(name):
        assert shard.monotonic < began + due_seconds + 3.0
        shard.monotonic += min(0.1, turn.seconds_to_next_deadline())
        turn.begin_turn()
        packet = wire.publish("t", b"1", 1, 1)
        publisher.link.receive(packet, 0, len(packet))
        turn.end_turn()
    assert shard.monotonic >= began + due_seconds
    if due_seconds == 15.0:
        assert silent.closed


def test_a_second_step_of_a_turn_is_followed_by_the_stages_that_it_needs_alone(shard: Shard) -> None:
    turn, ran = shard.parts.turn, list[str]()

    def commit() -> None:
        ran.append("commit")
        if ran.count("commit") == 1:
            turn._commands.put(GoOn())

    timed, each, again = Noted(lambda: ran.append("timed")), Noted(lambda: ran.append("each")), Noted(commit)
    turn.stages.connect(StagesInOrder(timed=(timed,), each=(again, each), again=(again,)))
    turn.begin_turn()
    turn.end_turn()
    assert ran == ["timed", "commit", "each", "commit"]


class Noted(Stage):
    """A stage that calls."""

    def __init__(self, call: Callable[[], object], deadline: Callable[[], float] = lambda: inf) -> None:
        self._call, self._deadline = call, deadline

    def end_turn(self) -> None:
        self._call()

    def next_deadline(self) -> float:
        return self._deadline()


class Link:
    """One whose readers go on, or fail."""

    is_bus, peer = False, "test"

    def __init__(self, client_id: str, *, fails: bool) -> None:
        self.client_id, self._fails = client_id, fails
        self.link = self.transport = self
        self.heard: list[str] = []

    def drained(self) -> None:
        if self._fails:
            raise ZeroDivisionError
        self.heard.append("go on")

    def end(self, *, with_will: bool) -> None:
        self.heard.append("end")


def test_a_link_that_fails_as_it_goes_on_ends_alone(shard: Shard) -> None:
    links = [Link("bad", fails=True), Link("good", fails=False)]
    for link in links:
        shard.parts.turn._ready.add(link)
    shard.parts.turn.steps.step()
    assert [link.heard for link in links] == [["end"], ["go on"]]
    assert [event["client_id"] for event in shard.told("client.crashed")] == ["bad"]


def test_the_pump_waits_for_what_is_due_first_and_not_at_all_while_something_is_left_to_do(
    shard: Shard,
) -> None:
    turn, timers = shard.parts.turn, shard.parts.timers
    due = [5.0, 3.0]
    first, second = (Noted(lambda: None, lambda at=at: shard.monotonic + due[at]) for at in range(2))  # type: ignore[misc]
    turn.stages.connect(StagesInOrder(timed=(first,), deadlines=(second,)))
    timers._later.clear()
    assert turn.seconds_to_next_deadline() == pytest.approx(3.0)
    timers.later(1.0, lambda: None)
    assert turn.seconds_to_next_deadline() == pytest.approx(1.0)
    due[1] = -1.0
    assert turn.seconds_to_next_deadline() == 0.0, "what is overdue is not waited for, nor less than nothing"
    due[1] = 5.0
    timers.next_turn(lambda: None)
    assert turn.seconds_to_next_deadline() == 0.0
