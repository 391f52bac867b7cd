"""A shared subscription in the bench: each message comes once to one of its subscribers."""

import socket
from array import array
from pathlib import Path

import pytest

from bench import progress
from bench.load.load import Load
from bench.load.subscribe import Subscriber, heard
from bench.progress import Progress
from tests.bench.frames import frame

LOAD = Load(publishers=2, subscribers=2, spread="shared", rate=2, phase="burst")


@pytest.fixture
def sent(tmp_path: Path) -> Progress:
    """Two messages of each publisher were sent."""
    path = tmp_path / "progress"
    progress.create(path, LOAD.publishers, (1, 1))
    counters = Progress(path, LOAD.publishers, (1, 1))
    counters.sent[0] = counters.sent[1] = 2
    return counters


def got(*messages: list[tuple[int, int]]) -> list[Subscriber]:
    """One subscriber for each list of (publisher, sequence) that it receives."""
    made = []
    for number, some in enumerate(messages):
        ours, theirs = socket.socketpair()
        subscriber = Subscriber(ours, LOAD, number, array("Q"))
        subscriber.begin(0)
        theirs.sendall(b"".join(frame(p, s, topic=b"b/%05d" % p) for p, s in some))
        subscriber.receive(memoryview(bytearray(4096)), bytearray(4096), False)
        made.append(subscriber)
    return made


def test_what_one_subscriber_skips_and_another_gets_is_not_lost(sent: Progress) -> None:
    seen = heard(got([(0, 0), (1, 1)], [(1, 0), (0, 1)]), sent, 0, 0.0)
    assert (seen.received, seen.missing, seen.late) == (4, 0, 0)


def test_what_nobody_gets_is_lost(sent: Progress) -> None:
    assert heard(got([(0, 0), (1, 1)], [(0, 1)]), sent, 0, 0.0).missing == 1


def test_what_two_get_came_twice(sent: Progress) -> None:
    everything = [(0, 0), (1, 0), (0, 1), (1, 1)]
    seen = heard(got(everything, [(0, 1)]), sent, 0, 0.0)
    assert (seen.late, seen.missing) == (1, 0)


def test_subscribers_of_one_group_ask_for_the_same() -> None:
    assert {LOAD.topic_filter(number) for number in range(2)} == {"$share/bench/b/#"}
