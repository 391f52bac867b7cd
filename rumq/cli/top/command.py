"""`rumqd top`: a live view of a running broker."""

from __future__ import annotations

import argparse
import sys

from rumq.cli.ask.source_flags import add_source_flags, source_of
from rumq.errors import RumqError

VIEWS = ("clients", "topics", "shards", "partitions", "groups", "events")
ABOUT = """\
A live view of a running broker: rates, latency, disk and health above, and below it clients, topics, shards,
partitions, shared groups or events, sorted and filtered by the broker. Over the socket of its data directory, or over
REST. It asks once a second, for as many rows as fit. Without a terminal, and with --once, it prints one frame as text.
"""
EXAMPLES = """\
examples:
  rumqd top                                      of ./rumq-data, or of the context in use
  rumqd top --data /var/lib/rumq --sort lag
  rumqd top topics --filter 'plant/#'
  rumqd top --url https://broker:8080 --token-file token --cafile ca.pem
  rumqd top --once --rows 50 | less

keys: 1 to 6 or Tab another view; s, S another order; / filter, Esc clears it; arrows select, Enter shows a client,
Esc goes back; PgDn, PgUp more rows; p or space pauses; + and - the interval; ? help; q quits

exit status: 0 quit, or printed; 1 no broker answers, or rich is not installed; 2 invalid arguments
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("view", nargs="?", choices=VIEWS, default="clients", help="what to list first [clients]")
    parser.add_argument("--sort", metavar="KEY", help="order of rows, as of rumqd ask clients, topics [rate, records]")
    parser.add_argument("--filter", metavar="TEXT", default="", help="only these clients, topics, events ... [all]")
    parser.add_argument("--client", metavar="ID", help="begin with this client in detail")
    parser.add_argument("--interval", metavar="SECONDS", type=interval, default=1.0, help="between refreshes [1]")
    parser.add_argument("--once", action="store_true", help="print one frame and exit")
    parser.add_argument("--rows", metavar="N", type=rows, help="rows of a frame that is printed [20]")
    add_source_flags(parser)


def interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.2 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text}: expected seconds, 0.2 to 3600")
    return seconds


def rows(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 to 10000")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Returns the exit status. raises: RumqError"""
    try:
        import rich  # noqa: F401
    except ImportError:
        raise RumqError("the live view needs rich: pip install 'rumq[terminal]'") from None
    import trio

    from rumq.cli.ask.command import tolerate_other_encodings
    from rumq.cli.top.state import TopState

    tolerate_other_encodings()

    state = TopState.begun(args.view, args.sort, args.filter, args.client, args.interval)
    source = source_of(args)
    if args.once or not sys.stdout.isatty() or not sys.stdin.isatty():
        from rumq.cli.top.once import print_frame

        return trio.run(print_frame, source, state, args.rows or 20)
    from rumq.cli.top.live import run_live

    return trio.run(run_live, source, state)
