"""The supervisor: shards are started, restarted when they die, and stopped in order.

The kernel's part is done by hand: each wait of the supervisor is one step of the test."""

import ctypes
import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from rumq.supervision import supervisor
from rumq.supervision.broker_parent import PR_SET_PDEATHSIG
from rumq.supervision.service_notification import READY, STOPPING
from rumq.supervision.supervisor import (
    BACKOFF_SECONDS,
    CRASHES_REPORTED,
    HAS_RELOADED,
    IS_ALIVE,
    IS_READY,
    STEADY_SECONDS,
    Supervisor,
)
from rumq.supervision.watchdog import ALIVE

Step = Callable[[], None]


class Kernel:
    """Processes and signals. signals: sent, in order, as (shard, signal)"""

    def __init__(self, count: int = 2) -> None:
        self.steps: deque[Step] = deque()
        self.now = 1000.0
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.notified: list[str] = []
        self.signals: list[tuple[int, signal.Signals]] = []
        self.waits: list[float | None] = []
        self.starts: list[float] = []
        self._kept: list[int] = []  # descriptors to write to: the waker, then one for each process
        self._ended: dict[int, int] = {}
        self._pid = 100
        self._is_blocked = False
        self.is_good = True  # what a reload reads
        self._count = count
        self.watched(0.0)

    def watched(self, seconds: float) -> None:
        """By a service manager that restarts us after so many seconds of silence."""
        self.supervisor = Supervisor(
            self._count, lambda index, fd: 0, event=lambda name, **fields: self.events.append((name, fields)),
            all_ready=lambda **fields: self.events.append(("ready", fields)),
            reread=self._reread,
            watchdog_seconds=seconds,
        )  # fmt: skip

    def _reread(self) -> bool:
        self.events.append(("reread", {"signals": len(self.signals)}))
        return self.is_good

    # Of the system

    def pipe(self) -> tuple[int, int]:
        read, written = PIPE()
        self._kept.append(os.dup(written))
        return read, written

    def mask(self, how: int, numbers: Any) -> None:
        self._is_blocked = how == signal.SIG_BLOCK

    def fork(self) -> int:
        assert self._is_blocked, "a signal to a process that still has our handlers would be lost"
        self._pid += 1
        self.starts.append(self.now)
        return self._pid

    def waitpid(self, pid: int, flags: int) -> tuple[int, int]:
        return (pid, self._ended.pop(pid)) if pid in self._ended else (0, 0)

    def kill(self, pid: int, number: int) -> None:
        self.signals.append((self._shard(pid), signal.Signals(number)))

    def select(self, fds: list[int], _: Any, __: Any, seconds: float | None) -> tuple[list[int], list[int], list[int]]:
        assert not self._is_blocked
        self.waits.append(seconds)
        if self.steps:
            self.steps.popleft()()
        elif seconds is None:
            raise AssertionError("nothing happens any more")
        else:
            self.now += seconds
        return SELECT(fds, [], [], 0.0)

    def _shard(self, pid: int) -> int:
        return next(child.index for child in self.supervisor._children if child.pid == pid)

    def _fd(self, index: int) -> int:
        return self._kept[self.supervisor._children[index].pid - 100]

    # Steps

    def says(self, index: int, what: bytes = IS_READY) -> Step:
        return lambda: void(os.write(self._fd(index), what))

    def gets(self, number: signal.Signals) -> Step:
        return lambda: void(os.write(self._kept[0], bytes([number])))

    def ends(self, index: int, status: int) -> Step:
        """status: of its exit, or minus a signal"""

        def end() -> None:
            self._ended[self.supervisor._children[index].pid] = -status if status < 0 else status << 8
            self.gets(signal.SIGCHLD)()

        return end

    def after(self, seconds: float) -> Step:
        def wait() -> None:
            self.now += seconds

        return wait

    def run(self, *steps: Step) -> int:
        """Until all processes have ended."""
        self.steps += steps
        return self.supervisor.run(self.now)

    def told(self, name: str) -> list[dict[str, Any]]:
        return [fields for each, fields in self.events if each == name]

    def stop(self, *statuses: int) -> list[Step]:
        """SIGTERM, and each shard ends with its status."""
        return [self.gets(signal.SIGTERM), *[self.ends(index, each) for index, each in enumerate(statuses)]]

    def close(self) -> None:
        for fd in self._kept:
            os.close(fd)


def void(_: object) -> None: ...


PIPE, SELECT = os.pipe, select.select


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Kernel()
    monkeypatch.setattr(os, "pipe", made.pipe)
    monkeypatch.setattr(os, "fork", made.fork)
    monkeypatch.setattr(os, "waitpid", made.waitpid)
    monkeypatch.setattr(os, "kill", made.kill)
    monkeypatch.setattr(select, "select", made.select)
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda fd, **_: -1)
    monkeypatch.setattr(signal, "pthread_sigmask", made.mask)
    monkeypatch.setattr(supervisor, "share_memory", lambda: None)
    monkeypatch.setattr(supervisor, "notify", made.notified.append)
    monkeypatch.setattr(supervisor, "reloading", lambda: "RELOADING")
    yield made
    monkeypatch.undo()
    made.close()


def test_the_broker_is_ready_once_every_shard_is(kernel: Kernel) -> None:
    seen: list[int] = []
    look = lambda: seen.append(len(kernel.told("ready")))  # noqa: E731
    status = kernel.run(kernel.says(0), look, kernel.after(1.5), kernel.says(1), look, *kernel.stop(0, 0))
    assert status == 0 and seen == [0, 1] and kernel.told("ready") == [{"seconds": 1.5}]
    assert kernel.notified == [READY, STOPPING]


def test_a_stop_is_passed_on_and_ends_when_the_last_shard_has(kernel: Kernel) -> None:
    status = kernel.run(kernel.says(0), kernel.says(1), *kernel.stop(0), kernel.gets(signal.SIGINT), kernel.ends(1, 0))
    assert status == 0 and len(kernel.starts) == 2, "nothing is started again"
    assert kernel.signals == [(0, signal.SIGTERM), (1, signal.SIGTERM)]
    assert kernel.told("broker.stopping") == [{"signal": "SIGTERM"}], "a second signal changes nothing"


@pytest.mark.parametrize(("statuses", "status"), [((0, 3), 3), ((4, 3), 4), ((-9, 0), 0)])
def test_the_exit_status_is_the_first_that_a_shard_complained_with(
    kernel: Kernel, statuses: tuple[int, int], status: int
) -> None:
    assert kernel.run(kernel.says(0), kernel.says(1), *kernel.stop(*statuses)) == status


def test_a_shard_that_refuses_to_start_ends_all_of_them(kernel: Kernel) -> None:
    """It has reported why: a restart would not help."""
    assert kernel.run(kernel.says(0), kernel.ends(1, 2), kernel.ends(0, 0)) == 2
    assert len(kernel.starts) == 2 and kernel.signals == [(0, signal.SIGTERM)]
    assert kernel.told("ready") == kernel.told("shard.died") == []


def test_a_shard_that_dies_is_started_again_at_once_and_the_others_are_left_alone(kernel: Kernel) -> None:
    kernel.run(
        kernel.says(0), kernel.says(1), kernel.ends(1, -signal.SIGKILL), kernel.after(0.25), kernel.says(1),
        *kernel.stop(0, 0),
    )  # fmt: skip
    assert kernel.told("shard.died") == [{"shard": 1, "why": "SIGKILL", "start_seconds": 0.0}]
    assert kernel.told("shard.ready") == [{"shard": 1, "seconds": 0.25}] and len(kernel.told("ready")) == 1
    assert kernel.starts == [1000.0] * 3
    assert {number for _, number in kernel.signals} == {signal.SIGTERM}


def test_one_that_keeps_dying_is_started_ever_later_and_that_is_told(kernel: Kernel) -> None:
    def dies() -> None:
        kernel.ends(1, 1)()

    steps: list[Step] = [kernel.says(0), kernel.says(1)]
    for wait in BACKOFF_SECONDS[:4]:
        steps += [dies, *([kernel.after(wait)] if wait else [])]
    kernel.run(*steps, *kernel.stop(0, 0))
    assert [each["start_seconds"] for each in kernel.told("shard.died")] == [*BACKOFF_SECONDS[:4]]
    assert [each["why"] for each in kernel.told("shard.died")] == ["exit status 1"] * 4
    times = [each["times"] for each in kernel.told("shard.crashing")]
    assert times == [CRASHES_REPORTED, CRASHES_REPORTED + 1]
    waited = [after - before for before, after in zip(kernel.starts[1:], kernel.starts[2:], strict=False)]
    assert waited == pytest.approx([*BACKOFF_SECONDS[:4]])


def test_one_that_ran_for_a_while_is_started_at_once_again(kernel: Kernel) -> None:
    kernel.run(
        kernel.says(0), kernel.says(1), kernel.ends(1, 1), kernel.ends(1, 1), kernel.after(BACKOFF_SECONDS[1]),
        kernel.after(STEADY_SECONDS), kernel.ends(1, 1), *kernel.stop(0, 0),
    )  # fmt: skip
    assert [each["start_seconds"] for each in kernel.told("shard.died")] == [0.0, BACKOFF_SECONDS[1], 0.0]


def test_it_sleeps_until_the_next_restart_and_for_ever_when_none_is_due(kernel: Kernel) -> None:
    kernel.run(kernel.says(0), kernel.says(1), kernel.ends(1, 1), kernel.ends(1, 1), lambda: None, *kernel.stop(0, 0))
    assert kernel.waits[:4] == [None] * 4
    assert kernel.waits[4] == pytest.approx(BACKOFF_SECONDS[1])


def test_a_stop_while_one_is_to_be_started_does_not_start_it(kernel: Kernel) -> None:
    kernel.run(
        kernel.says(0), kernel.says(1), kernel.ends(1, 1), kernel.ends(1, 1), kernel.gets(signal.SIGTERM),
        kernel.after(60.0), kernel.ends(0, 0),
    )  # fmt: skip
    assert len(kernel.starts) == 3 and kernel.signals == [(0, signal.SIGTERM)]


def test_settings_are_read_again_by_every_shard_and_it_is_ready_when_all_have(kernel: Kernel) -> None:
    seen: list[list[str]] = []
    look = lambda: seen.append([*kernel.notified])  # noqa: E731
    kernel.run(
        kernel.says(0), kernel.says(1), kernel.gets(signal.SIGHUP), kernel.says(0, HAS_RELOADED), look,
        kernel.says(1, HAS_RELOADED), look, *kernel.stop(0, 0),
    )  # fmt: skip
    assert kernel.signals[:2] == [(0, signal.SIGHUP), (1, signal.SIGHUP)]
    assert seen == [[READY, "RELOADING"], [READY, "RELOADING", READY]]
    assert kernel.told("reread") == [{"signals": 0}], "a shard that starts later has them too"


def test_a_shard_that_dies_meanwhile_is_not_waited_for(kernel: Kernel) -> None:
    kernel.run(
        kernel.says(0), kernel.says(1), kernel.gets(signal.SIGHUP), kernel.says(0, HAS_RELOADED), kernel.ends(1, 1),
        *kernel.stop(0, 0),
    )  # fmt: skip
    assert kernel.notified == [READY, "RELOADING", READY, STOPPING]


def test_shards_keep_their_settings_if_the_new_ones_cannot_be_had(kernel: Kernel) -> None:
    """As with a listener that cannot be bound."""
    kernel.is_good = False
    kernel.run(kernel.says(0), kernel.says(1), kernel.gets(signal.SIGHUP), *kernel.stop(0, 0))
    assert [number for _, number in kernel.signals] == [signal.SIGTERM, signal.SIGTERM]
    assert kernel.notified == [READY, "RELOADING", READY, STOPPING]


# In the new process


class Exit(Exception):
    pass


@pytest.mark.parametrize("is_orphan", [False, True])
@pytest.mark.parametrize(("result", "status"), [(0, 0), (3, 3), (ValueError("why"), 1), (SystemExit(7), 1)])
def test_the_new_process_ends_with_the_shard_s_status_and_never_goes_on_as_the_supervisor(
    monkeypatch: pytest.MonkeyPatch, result: Any, status: int, is_orphan: bool
) -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    asked: list[tuple[Any, ...]] = []

    def run_shard(index: int, fd: int) -> int:
        asked.append((index, fd))
        if isinstance(result, BaseException):
            raise result
        return int(result)

    def leave(number: int) -> None:
        raise Exit(number)

    class Library:
        def prctl(self, *args: int) -> None:
            asked.append(args)

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    monkeypatch.setattr(os, "_exit", leave)
    handlers: dict[int, Any] = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda fd: -1)
    masks: list[tuple[int, set[int]]] = []
    monkeypatch.setattr(signal, "pthread_sigmask", lambda how, numbers: masks.append((how, numbers)))
    made = Supervisor(
        1,
        run_shard,
        event=lambda name, **fields: events.append((name, fields)),
        all_ready=lambda **_: None,
        reread=lambda: True,
        watchdog_seconds=0.0,
    )
    with pytest.raises(Exit) as ended:
        made._run_child(4, 9, os.getppid() + is_orphan)
    assert asked[0] == (PR_SET_PDEATHSIG, signal.SIGKILL), "it dies with its parent"
    if is_orphan:
        assert asked[1:] == events == [] and ended.value.args == (1,), "which has died before it could say so"
        return
    assert asked[1:] == [(4, 9)] and ended.value.args == (status,)
    assert {*handlers.values()} == {signal.SIG_DFL} and signal.SIGTERM in handlers
    assert masks == [(signal.SIG_SETMASK, {signal.SIGHUP})], "until it can read its settings again"
    failed = [("shard.failed", {"shard": 4, "exc_info": True})]
    assert events == (failed if isinstance(result, BaseException) else [])


def test_the_service_manager_hears_of_us_while_no_shard_is_silent(kernel: Kernel) -> None:
    kernel.watched(20.0)
    both = [kernel.says(0, IS_READY + IS_ALIVE), kernel.says(1, IS_READY + IS_ALIVE)]
    alone = [step for _ in range(4) for step in (kernel.after(5.0), kernel.says(0, IS_ALIVE))]
    kernel.run(*both, *alone, *kernel.stop(0, 0))
    assert kernel.notified[:2] == [ALIVE, READY] and kernel.notified.count(ALIVE) == 3
    assert kernel.told("shard.silent") == [{"shard": 1, "seconds": 15.0}]


def test_a_silent_shard_that_dies_is_no_longer_missed(kernel: Kernel) -> None:
    kernel.watched(20.0)
    both = [kernel.says(0, IS_READY + IS_ALIVE), kernel.says(1, IS_READY + IS_ALIVE)]
    alone = [step for _ in range(3) for step in (kernel.after(5.0), kernel.says(0, IS_ALIVE))]
    dies = [kernel.ends(1, -9), kernel.says(0, IS_ALIVE), kernel.after(5.0), kernel.says(0, IS_ALIVE)]
    kernel.run(*both, *alone, *dies, *kernel.stop(0, 0))
    assert kernel.told("shard.silent") == [{"shard": 1, "seconds": 15.0}]
    assert kernel.notified == [ALIVE, READY, ALIVE, ALIVE, ALIVE, STOPPING], "at 0, 5, 10, and again at 20"


def test_a_supervisor_that_nobody_watches_waits_for_good(kernel: Kernel) -> None:
    kernel.run(kernel.says(0), kernel.says(1, IS_READY + IS_ALIVE), *kernel.stop(0, 0))
    assert set(kernel.waits) == {None} and ALIVE not in kernel.notified
