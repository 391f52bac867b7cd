"""One generator process: `python -m bench.load.worker`. Takes a `Task` and then `Round`s as JSON lines on standard
input, and answers each with one JSON line; ends when its input does.
"""

import gc
import select
import socket
import sys
from array import array
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.connections import BenchFault, allow_files, open_connections
from bench.connections import subscribe as subscribe_to
from bench.load import alone, connecting, open_loop, pinging, publish, subscribe
from bench.load.load import Failed, Heard, Published, Ready, Report, Round, Task
from bench.load.publisher import BATCH_BYTES, Publisher
from bench.progress import Progress

# A paced publisher has a message or two waiting, never a batch; ten thousand batch buffers would be 1.3 GB.
PACED_OUT_BYTES = 1024
SAMPLES_MAX = 2_000_000


def main() -> None:
    allow_files()
    task = msgspec.json.decode(sys.stdin.readline(), type=Task)
    try:
        run_task(task)
    except (BenchFault, OSError, ValueError) as fault:
        say(Failed(why=f"{task.role}: {fault}"))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def run_task(task: Task) -> None:
    # Before the sockets, so that its descriptor is below what select() can wait for.
    epoll = select.epoll()
    own = range(task.first, task.first + task.count)
    client_ids = [f"{task.name}-{task.role[0]}{number}" for number in own]
    lasting = task.load.lasting and task.role == "subscribe"
    connections = open_connections(task.address, client_ids, lasting=lasting, keep_alive_s=task.load.keep_alive_s)
    if task.role == "publish":
        publishing(task, own, connections, epoll)
    elif task.role == "subscribe":
        subscribing(task, own, connections, epoll)
    elif task.role == "ping":
        watch(connections, epoll)
        give_rounds(pinging.Pinging(connections, task.load, epoll).run_round)
    elif task.role == "connect":
        give_rounds(connecting.Connecting(task.address, task.load, task.name, epoll).run_round)
    else:
        say(Ready())
        sys.stdin.readline()


def give_rounds(run_round: Callable[[Round], Published]) -> None:
    gc.disable()
    say(Ready())
    while (now := next_round()) is not None:
        say(run_round(now))


def publishing(task: Task, own: range, connections: list[socket.socket], epoll: select.epoll) -> None:
    load, progress = task.load, Progress(Path(task.progress), task.load.publishers, task.workers)
    if load.phase or load.alone:
        if load.phase:
            watch(connections, epoll)
        rounds = open_loop.OpenLoop(connections, load, own) if load.phase else alone.Alone(connections[0], load)
        give_rounds(lambda now: rounds.run_round(now, progress, task.slot))
        return
    out_bytes = PACED_OUT_BYTES if load.rate else BATCH_BYTES
    publishers = [Publisher(*of, out_bytes) for of in zip(connections, [load] * len(own), own, strict=True)]
    watch(connections, epoll)
    gc.disable()
    say(Ready())
    while (now := next_round()) is not None:
        say(publish.run_round(publishers, epoll, load, now, progress, task.slot))


def subscribing(task: Task, own: range, connections: list[socket.socket], epoll: select.epoll) -> None:
    load, progress = task.load, Progress(Path(task.progress), task.load.publishers, task.workers)
    samples = SAMPLES_MAX // len(own) if load.latency else 0
    latencies = [array("Q", bytes(8 * samples)) for _ in own]
    subscribers = [subscribe.Subscriber(*of) for of in zip(connections, [load] * len(own), own, latencies, strict=True)]
    for connection, number in zip(connections, own, strict=True):
        subscribe_to(connection, load.topic_filter(number), load.qos)
    watch(connections, epoll)
    gc.disable()
    say(Ready())
    while (now := next_round()) is not None:
        for subscriber in subscribers:
            subscriber.begin(now.number)
        say(Ready())
        heard = subscribe.run_round(subscribers, epoll, load, now, progress, task.slot)
        taken = [times[: of.check.samples] for of, times in zip(subscribers, latencies, strict=True)]
        say(msgspec.structs.replace(heard, latencies_ns=b"".join(times.tobytes() for times in taken)))


def watch(connections: list[socket.socket], epoll: select.epoll) -> None:
    for connection in connections:
        connection.setblocking(False)
        epoll.register(connection, select.EPOLLIN)


def next_round() -> Round | None:
    line = sys.stdin.readline()
    return msgspec.json.decode(line, type=Round) if line else None


def say(report: Report | Published | Heard) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
