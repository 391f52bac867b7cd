"""The epoll set in both its forms: what is ready, when nothing is, and what a signal does to a wait."""

import os
import select
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kernel_forms import forms

kernels = pytest.mark.parametrize("kernel", forms("rumq.net.kernels.epoll"))


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def ready(found: Any, seconds: float = 0.0) -> list[tuple[int, int]]:
    return [(found.fd_at(at), found.mask_at(at)) for at in range(found.wait(seconds))]


@kernels
def test_what_is_ready_is_told_with_its_events(kernel: Any, pipe: tuple[int, int]) -> None:
    near, far = pipe
    found = kernel.EpollSet()
    found.register(near, select.EPOLLIN)
    found.register(far, select.EPOLLOUT)
    assert ready(found) == [(far, select.EPOLLOUT)]
    os.write(far, b"x")
    assert sorted(ready(found, 30.0)) == sorted([(near, select.EPOLLIN), (far, select.EPOLLOUT)])
    found.unregister(far)
    assert ready(found, 30.0) == [(near, select.EPOLLIN)]
    found.close()


@kernels
def test_a_wait_ends_with_nothing_when_its_time_is_over(kernel: Any, pipe: tuple[int, int]) -> None:
    found = kernel.EpollSet()
    found.register(pipe[0], select.EPOLLIN)
    assert ready(found, 0.0005) == []
    found.close()


@kernels
def test_a_signal_runs_its_handler_and_the_wait_ends(kernel: Any, pipe: tuple[int, int]) -> None:
    near, far = pipe
    found = kernel.EpollSet()
    found.register(near, select.EPOLLIN)
    before = signal.signal(signal.SIGALRM, lambda *_: os.write(far, b"x"))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        # With nothing, or with what the handler has written.
        assert ready(found, 30.0) in ([], [(near, select.EPOLLIN)])
        assert ready(found, 30.0) == [(near, select.EPOLLIN)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        found.close()


@kernels
def test_what_a_signal_handler_raises_comes_out_of_the_wait(kernel: Any, pipe: tuple[int, int]) -> None:
    def handler(*_: object) -> None:
        raise ZeroDivisionError

    found = kernel.EpollSet()
    found.register(pipe[0], select.EPOLLIN)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        returned: list[int] = []
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(ZeroDivisionError):
            # No bytecode runs between the wait and its result's place, which would run the handler too.
            list(map(returned.append, map(found.wait, [30.0])))
        assert returned == []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        found.close()


@kernels
def test_no_more_events_than_the_array_has_room_for(kernel: Any) -> None:
    ends = [os.eventfd(1) for _ in range(kernel.EVENTS_MAX + 5)]
    found = kernel.EpollSet()
    for end in ends:
        found.register(end, select.EPOLLIN)
    assert found.wait(0.0) == kernel.EVENTS_MAX
    assert {found.fd_at(at) for at in range(kernel.EVENTS_MAX)} <= {*ends}
    found.close()
    for end in ends:
        os.close(end)


@kernels
def test_a_closed_set_is_an_error(kernel: Any) -> None:
    found = kernel.EpollSet()
    found.close()
    with pytest.raises((OSError, ValueError)):
        found.wait(0.0)


@kernels
def test_a_poller_of_one_s_own_is_asked_instead(kernel: Any) -> None:
    class Poller:
        def __init__(self) -> None:
            self.asked: list[tuple[float, int]] = []
            self.register = self.unregister = None

        def poll(self, seconds: float, most: int) -> list[tuple[int, int]]:
            self.asked.append((seconds, most))
            return [(7, select.EPOLLIN), (8, select.EPOLLOUT)]

    poller = Poller()
    found = kernel.EpollSet(lambda: poller)
    assert ready(found, 1.5) == [(7, select.EPOLLIN), (8, select.EPOLLOUT)]
    assert poller.asked == [(1.5, kernel.EVENTS_MAX)]
