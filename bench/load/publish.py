"""The publishing worker's loops: `Flood`, as fast as broker, window and lead allow; `pace`, at a rate.

No task library in here: an epoll set, batches, and one Python turn for each batch.
"""

import select
import time
from collections import deque
from collections.abc import Sequence

from bench.load.load import Load, Published, Round
from bench.load.publisher import RECEIVE_BYTES, Publisher
from bench.progress import Lead, Progress

IN, OUT = select.EPOLLIN, select.EPOLLOUT
# How long one that is too far ahead sleeps: shorter costs the broker's core, longer starves a fast broker.
AHEAD_S = 0.0001
IDLE_S = 0.05
# After a round's time is over: for the last acknowledgements.
GRACE_S = 10.0


def run_round(
    publishers: Sequence[Publisher],
    epoll: select.epoll,
    load: Load,
    now: Round,
    progress: Progress,
    slot: int,
) -> Published:
    """Publish one round; the shared counters say what was sent once it returns."""
    for publisher in publishers:
        publisher.begin(now.number, now.messages)
    cpu_s, started_ns = time.process_time(), time.monotonic_ns()
    late_ns_max = 0
    if load.rate:
        late_ns_max = pace(publishers, load, now)
    else:
        lead = Lead(progress, now.lead, load.deliveries_per_message)
        Flood(publishers, epoll, lead).run(now.seconds_max, progress, slot)
    ended_ns = time.monotonic_ns()
    for publisher in publishers:
        progress.sent[publisher.number] = publisher.sent
    progress.ended[slot] = 1
    return Published(
        started_ns=started_ns,
        ended_ns=ended_ns,
        sent=sum(publisher.sent for publisher in publishers),
        unacknowledged=sum(publisher.unacknowledged for publisher in publishers),
        disordered=sum(publisher.disordered for publisher in publishers),
        late_ns_max=late_ns_max,
        cpu_s=time.process_time() - cpu_s,
    )


class Flood:
    """A round of publishing as fast as windows, lead and sockets allow. `turn`: who may send more now."""

    def __init__(self, publishers: Sequence[Publisher], epoll: select.epoll, lead: Lead) -> None:
        self.by_descriptor = {publisher.connection.fileno(): publisher for publisher in publishers}
        self.publishers, self.epoll, self.lead = publishers, epoll, lead
        self.unended = {publisher.number for publisher in publishers}
        self.turn = deque(publishers)
        for publisher in publishers:
            publisher.queued = True
        self.buffer = memoryview(bytearray(RECEIVE_BYTES))
        self.offered = 0
        self.room = 0

    def run(self, seconds_max: float, progress: Progress, slot: int) -> None:
        stop_at, stopped = time.monotonic() + seconds_max, False
        while self.unended:
            self.room = self.lead.room()
            if self.turn and self.room > 0:
                self.send()
                progress.offered[slot] = self.offered
            if self.turn and self.room <= 0:
                select.select([self.epoll], [], [], AHEAD_S)
            for descriptor, event in self.epoll.poll(0 if self.turn or not self.unended else IDLE_S):
                self.serve(self.by_descriptor[descriptor], event)
            if time.monotonic() > stop_at:
                if stopped:
                    return
                stopped, stop_at = True, stop_at + GRACE_S
                self.stop()

    def send(self) -> None:
        """Give everyone in the turn one batch."""
        for _ in range(len(self.turn)):
            if self.room <= 0:
                return
            publisher = self.turn.popleft()
            publisher.queued = False
            written = publisher.write(min(publisher.room(), self.room))
            self.room -= written
            self.offered += written
            self.flush(publisher)

    def serve(self, publisher: Publisher, event: int) -> None:
        if event & ~OUT:
            publisher.receive(self.buffer)
        if publisher.queued:
            return
        if publisher.room() > 0 and self.room > 0 and not publisher.blocked:
            # Replies that wait leave with the next batch.
            publisher.queued = True
            self.turn.append(publisher)
        else:
            self.flush(publisher)

    def flush(self, publisher: Publisher) -> None:
        was_blocked = publisher.blocked
        flushed = publisher.flush()
        if was_blocked == flushed:
            self.epoll.modify(publisher.connection, IN if flushed else IN | OUT)
        if flushed and publisher.room() > 0:
            publisher.queued = True
            self.turn.append(publisher)
        elif flushed and publisher.ended():
            self.unended.discard(publisher.number)

    def stop(self) -> None:
        """Send no new message; what is in flight may end."""
        for publisher in self.publishers:
            publisher.limit = publisher.sent
            publisher.queued = False
            if publisher.ended():
                self.unended.discard(publisher.number)
        self.turn.clear()


def pace(publishers: Sequence[Publisher], load: Load, now: Round) -> int:
    """Send message k at its time, k / rate after the start, whatever the broker does; QoS 0 only.

    returns: by how much a message was late at most, in ns. A message's own time is when it was really sent.
    """
    rate = load.rate * len(publishers) / load.publishers
    total, count = now.messages * len(publishers), len(publishers)
    stuck: dict[int, Publisher] = {}
    late_ns_max = sent = 0
    start_ns = time.monotonic_ns()
    while sent < total or stuck:
        now_ns = time.monotonic_ns()
        passed_ns = now_ns - start_ns
        if passed_ns > now.seconds_max * 1e9:
            break
        due = min(total, int(passed_ns * rate / 1e9) + 1)
        late_ns_max = max(late_ns_max, passed_ns - int(sent * 1e9 / rate) if sent < due else 0)
        for publisher in list(stuck.values()):
            if publisher.flush():
                del stuck[publisher.number]
        for k in range(sent, due):
            publisher = publishers[k % count]
            publisher.write(1, time.monotonic_ns() if load.latency else 0)
            if not publisher.flush():
                stuck[publisher.number] = publisher
        sent = due
        next_ns = int(sent * 1e9 / rate) - (time.monotonic_ns() - start_ns)
        if next_ns > 0:
            time.sleep(min(next_ns / 1e9, IDLE_S))
    return late_ns_max
