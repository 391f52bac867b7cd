"""What is put while a step runs is for the next one."""

from types import SimpleNamespace

from router.commands import GoOn
from rumq.loop.queues import ReadyLinks, StepQueue


def test_commands_are_taken_once_in_their_order() -> None:
    queue = StepQueue()
    put = queue.put  # a part may keep it: the queue is never replaced
    first, second, third = GoOn(), GoOn(), GoOn()
    put(first)
    put(second)
    taken = queue.take()
    put(third)
    assert taken == [first, second] and queue.take() == [third] and not queue.items


def test_a_link_goes_on_once_a_step_and_a_connection_with_the_link_that_it_has_then() -> None:
    ready, connection = ReadyLinks(), SimpleNamespace(link="handshake")
    ready.add("a")
    ready.add("a")
    ready.add_next_turn(connection)
    assert list(ready.take()) == ["a"]
    connection.link = "connected"
    ready.begin_turn()
    assert list(ready.take()) == ["connected"] and not ready.next_turn
