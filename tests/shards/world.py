"""A pool of threads for parts of a shard, without threads: its jobs run when the test says so."""

from collections import deque
from collections.abc import Callable
from typing import Any

from commitlog.write.segment_writer import Flush
from rumq.shards.write_path.worker_threads import Pool


class ByHand(Pool):
    """lanes: of the jobs that wait, in order; runs_in_place: jobs that wait for no disk run at once"""

    fd = -1
    pending = 0

    def __init__(self) -> None:
        self.jobs: deque[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]] = deque()
        self.lanes: deque[int] = deque()
        self.runs_in_place = False

    def maybe_write(self, flush: Flush) -> bool:
        if self.runs_in_place:
            flush.run()
        return self.runs_in_place

    def submit(self, job: Callable[[], Any], done: Callable[[Any, BaseException | None], None], lane: int = 0) -> None:
        self.jobs.append((job, done))
        self.lanes.append(lane)

    def flush(self, flush: Flush, done: Callable[[Any, BaseException | None], None], lane: int = 0) -> None:
        self.submit(flush.run, done, lane)

    def work(self) -> None:
        """Run the oldest job, and report its end as the loop does."""
        job, done = self.jobs.popleft()
        self.lanes.popleft()
        try:
            result = job()
        except OSError as fault:
            done(None, fault)
        else:
            done(result, None)

    def finish(self) -> None: ...
