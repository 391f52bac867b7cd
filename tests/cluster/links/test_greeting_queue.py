"""Who must go when too many connections have not greeted."""

from rumq.cluster.links.greeting_queue import WAITING_BYTES_MAX, GreetingQueue


def test_the_oldest_of_the_address_with_the_most_goes() -> None:
    queue: GreetingQueue[int] = GreetingQueue(4)
    assert queue.add(1, "node") is None
    assert [queue.add(number, "stranger") for number in (2, 3, 4)] == [None] * 3
    assert queue.add(5, "stranger") == 2 and queue.add(6, "other") == 3
    assert len(queue) == 4 and 1 in queue and 2 not in queue


def test_a_flood_of_one_address_takes_nothing_from_another() -> None:
    queue: GreetingQueue[int] = GreetingQueue(100)
    queue.add(-1, "node")
    losers = [queue.add(number, "stranger") for number in range(10_000)]
    assert -1 in queue and -1 not in losers and len(queue) == 100


def test_what_has_greeted_is_forgotten() -> None:
    queue: GreetingQueue[int] = GreetingQueue(2)
    queue.add(1, "a")
    queue.discard(1)
    queue.discard(1)
    assert len(queue) == 0 and queue.drop() is None
    assert GreetingQueue(0).count_max == 1


def test_bytes_that_wait_are_counted_while_their_connection_waits() -> None:
    queue: GreetingQueue[int] = GreetingQueue()
    for key in (1, 2):
        queue.add(key, "a")
    assert not queue.hold(1, WAITING_BYTES_MAX) and queue.hold(2, 1)
    assert queue.drop() == 1 and not queue.hold(2, WAITING_BYTES_MAX)
    assert queue.hold(2, WAITING_BYTES_MAX + 1)
    queue.discard(2)
    assert not queue.hold(2, WAITING_BYTES_MAX + 1)  # it is gone
