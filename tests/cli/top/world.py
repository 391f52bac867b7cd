"""A broker that is made up: answers for `rumqd top`, as a source."""

from __future__ import annotations

import msgspec
import trio

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin import rows as r
from rumq.admin.figures import ShardFigures
from rumq.cli.ask.questions import Question
from rumq.cli.ask.source import AskFailed
from rumq.cli.top.board import Board
from rumq.cli.top.state import TopState
from rumq.session.state.histogram import BOUNDS


def figures(
    shard: int = 0, incarnation: int = 1, *, published: float = 0, ready: int = 1, **counts: int
) -> ShardFigures:
    """counts: of the bucket of publish_ack with this number, as b3=7"""
    buckets = [0] * (len(BOUNDS) + 1)
    for name, count in counts.items():
        buckets[int(name[1:])] = count
    given = {
        "shard": shard, "incarnation": incarnation,
        "counters": {"messages_published": published, "received_bytes": 100 * published},
        "gauges": {
            "connected": 2, "sessions": 3, "ready": ready, "accepting": ready, "lag_records_max": 1234 * (shard + 1),
        },
        "undelivered": {"expired": 4, "retention": 1},
        "histograms": {"publish_ack": {"counts": buckets, "seconds": 0.0}}, "partitions": [], "lagging": [],
    }  # fmt: skip
    others: dict[str, object] = {field.name: {} for field in msgspec.structs.fields(ShardFigures) if field.required}
    return msgspec.convert(others | given, ShardFigures)


def client(name: str, **more: object) -> r.ClientRow:
    plain: dict[str, object] = {
        "client_id": name, "user": None, "connected": True, "address": "10.0.0.7:40000", "protocol": "5",
        "keep_alive_seconds": 60, "since_seconds": 61.0, "published": 1, "delivered": 2, "published_per_second": 0.0,
        "delivered_per_second": 0.0, "rate": 0.0, "in_flight": 0, "behind_records": 0, "behind_seconds": 0.0,
        "undelivered": 0, "subscriptions": ["plant/#"],
    }  # fmt: skip
    return msgspec.convert({**plain, **more}, r.ClientRow)


STATUS = a.Status(
    version="1.2.3", shards=2, listeners=["localhost:1883"], uptime_seconds=3725.0, memory_bytes=1 << 26,
    log_bytes=5 << 30, trimmed_for_space_records=0, disk_is_full=0, connected=4, sessions=6, retained=0, undelivered=0,
    handed_over=0, taken_over=0, partitions=[],
    disk=r.Disk(
        free_bytes=40 << 30, total_bytes=100 << 30, free_wanted=1 << 30, bytes_per_second=1e6, full_in_seconds=43_200.0,
        then="the oldest segments go",
    ),
)  # fmt: skip
CLIENTS = [client(f"pump-{number}", rate=1000.0 - number, behind_records=number) for number in range(100)]


class FakeSource:
    """asked: (question, request) of each; fails: why nothing is answered, empty: it is"""

    name = "fake"

    def __init__(self) -> None:
        self.asked: list[tuple[str, q.Request]] = []
        self.fails = ""
        self.answers: dict[str, msgspec.Struct] = {"status": STATUS}
        self.published = 0.0
        self.is_closed = False

    async def ask(self, question: Question, request: q.Request) -> msgspec.Struct:
        await trio.lowlevel.checkpoint()
        self.asked.append((question.name, request))
        if self.fails:
            raise AskFailed(self.fails)
        if question.name == "metrics":
            return a.Metrics(shards=[figures(0, published=self.published), figures(1, published=self.published)])
        if isinstance(request, q.Clients):
            rows = CLIENTS[request.offset : request.offset + request.limit]
            return a.Clients(clients=rows, left_out=len(CLIENTS) - len(rows))
        return self.answers[question.name]

    async def close(self) -> None:
        self.is_closed = True


def refreshed(state: TopState, rows: int = 15, source: FakeSource | None = None, *, times: int = 2) -> Board:
    """A board after so many refreshes, a second each, with 500 messages a shard in each."""
    source = source or FakeSource()
    now = 0.0
    board = Board(source, lambda: now)

    async def main() -> None:
        nonlocal now
        for _ in range(times):
            await board.refresh(state, rows)
            now += 1.0
            source.published += 500

    trio.run(main)
    return board
