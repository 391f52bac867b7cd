"""Failed tries, as engines tell each other."""

from __future__ import annotations

import msgspec

from rumq.queues.rules.names import MessageId
from rumq.queues.rules.tries import TOLD_BYTES_MAX, TOLD_MAX, OwnTries, Tries, tries_topic

ONE, TWO = MessageId("t", 1), MessageId("t", 2)


def test_the_highest_number_that_an_engine_tells_counts() -> None:
    tries = Tries()
    for process, count in (("a", 2), ("b", 3)):
        assert tries.apply(tries_topic("news", "c", process), msgspec.json.encode({str(ONE): [count, 9]}))
    assert (tries.of("c", ONE), tries.of("c", TWO), tries.of("other", ONE)) == (3, 0, 0)
    assert tries.processes("c") == ["a", "b"]
    assert tries.apply(tries_topic("news", "c", "b"), b"")
    assert tries.of("c", ONE) == 2
    assert not tries.apply("$queues/$tries/x", b"") and not tries.apply("x", b"")
    assert tries.apply(tries_topic("news", "c", "a"), b"nonsense") and tries.bad == 1


def test_an_engine_tells_what_is_not_done_and_still_of_use() -> None:
    own = OwnTries({})
    own.put(ONE, 1, 100)
    own.put(TWO, 1, 200)
    own.put(ONE, 2, 100)
    assert own.changed and msgspec.json.decode(own.encoded(50)) == {"2@t": [1, 200], "1@t": [2, 100]}
    assert not own.changed
    own.put(TWO, 0, 0)
    assert own.changed and own.encoded(100) == b""


def test_what_is_told_is_bounded() -> None:
    own = OwnTries({})
    for number in range(5 * TOLD_MAX):
        own.put(MessageId("t", number), 1, 100)
    assert len(own) == TOLD_MAX
    for number in range(1000):
        own.put(MessageId("x" * 500, number), 1, 100)
    assert len(own.encoded(0)) <= TOLD_BYTES_MAX
