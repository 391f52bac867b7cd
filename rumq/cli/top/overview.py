"""The upper lines of a frame: which broker, its rates, latency, clients, disk, and what is wrong."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from rumq.cli.top.board import Board
from rumq.cli.top.samples import sparkline
from rumq.cli.top.state import TopState
from rumq.terminal.units import age, count, printable, rate, size

DIM, GOOD, BAD, TITLE = "dim", "green", "bold red", "bold"
LINES = 5


def overview(board: Board, state: TopState, width: int, bars: str) -> list[Text | Table]:
    """As many renderables as `LINES`, each one line high."""
    samples, status = board.samples, board.status
    spark = max(8, min(60, width - 66))
    return [
        title(board, state, width),
        line(
            ("in", f"{rate_of(board, 'messages_published'):>10}"), (size_rate(board, "received_bytes"), 12),
            (sparkline(samples.rates("messages_published", spark), spark, bars), 0),
            ("ack", latency(board, "publish_ack")),
        ),
        line(
            ("out", f"{rate_of(board, 'messages_delivered'):>9}"), (size_rate(board, "sent_bytes"), 12),
            (sparkline(samples.rates("messages_delivered", spark), spark, bars), 0),
            ("dlv", latency(board, "publish_delivery")),
        ),
        line(
            ("clients", count(int(samples.gauge("connected")))), ("sessions", count(int(samples.gauge("sessions")))),
            ("behind", count(int(samples.largest("lag_records_max")))), ("lost", count(samples.undelivered())),
            ("p99 fsync", duration(samples.percentile("log_write", 0.99))),
            ("turn", duration(samples.percentile("turn", 0.99))),
        ),
        line(
            ("disk", disk(board)), ("log", size(status.log_bytes) if status is not None else "-"),
            ("memory", size(samples.gauge("memory_bytes"))), ("cpu", cpu(board)),
        ),
    ]  # fmt: skip


def title(board: Board, state: TopState, width: int) -> Text:
    status = board.status
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append("rumq", TITLE)
    if status is not None:
        text.append(f" {status.version}  up {age(status.uptime_seconds)}  {status.shards} shards  ")
    text.append(printable(board.source.name), DIM)
    text.append("  ")
    wrong = faults(board)
    text.append(wrong or "well", BAD if wrong else GOOD)
    if state.is_paused:
        text.append("  paused", "bold yellow")
    return text


def faults(board: Board) -> str:
    """What is wrong, the worst first; empty: nothing."""
    if board.problem:
        return board.problem
    samples, status = board.samples, board.status
    found = []
    if samples.smallest("ready") < 1:
        found.append("a shard is starting")
    if status is not None:
        found += [
            f"{each.stream}/{each.partition} offline: {each.offline}" for each in status.partitions if each.offline
        ]
        if status.disk_is_full:
            found.append("the disk is full: publishers are refused")
    if not found and samples.smallest("accepting") < 1:
        found.append("messages are not accepted")
    if samples.largest("draining"):
        found.append("draining: clients are refused")
    return "; ".join(found)


def line(*parts: tuple[str, str | int]) -> Text:
    """(label, value) pairs; (text, width) is a text without a label, at the right of its width."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for number, (first, second) in enumerate(parts):
        if number:
            text.append("  ")
        if isinstance(second, int):
            text.append(first.rjust(second))
        else:
            text.append(first + " ", DIM)
            text.append(second)
    return text


def rate_of(board: Board, name: str) -> str:
    found = board.samples.rate(name)
    return "-" if found is None else rate(found)


def size_rate(board: Board, name: str) -> str:
    found = board.samples.rate(name)
    return "-" if found is None else f"{size(found)}/s"


def latency(board: Board, name: str) -> str:
    half, most = (board.samples.percentile(name, share) for share in (0.5, 0.99))
    return f"p50 {duration(half)} p99 {duration(most)}"


def duration(seconds: float | None) -> str:
    """Of a bucket: a bound."""
    return "-" if seconds is None else f"<{age(seconds)}"


def disk(board: Board) -> str:
    found = board.status.disk if board.status is not None else None
    if found is None or found.free_bytes is None or not found.total_bytes:
        return "-"
    text = f"{size(found.free_bytes)} free ({100 * found.free_bytes / found.total_bytes:.0f} %)"
    if found.full_in_seconds is None:
        return text
    return f"{text}, {found.then.removeprefix('the ')} in {age(found.full_in_seconds)}"


def cpu(board: Board) -> str:
    found = board.samples.rate("cpu_seconds")
    return "-" if found is None else f"{found:.2f} cores"
