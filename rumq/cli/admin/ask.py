"""`rumqd ask`: ask a running broker about itself, its clients, and what was not delivered."""

import argparse
import json
import sys
from typing import Any

NAME = "ask"
LINE = "ask a running broker: status, clients, topics, ledger; end a connection or a session"
ABOUT = """\
Ask the broker that holds a data directory. `clients` says for each session who and where it is, what it published, what
was delivered, what is in flight, how far it is behind and how fast it goes; `topics` how many records each has had;
`ledger` says what was not delivered, by reason, client and topic: expired, over_limit, retention, backlog_records_max,
damaged, no_permission. With --client it also says what is pending, by topic: published = delivered + pending + counted.
`status` counts messages that shards handed over to each other, and says how full the disk is and when it will be.
`disconnect` ends a client's connection, `drop` its session too.
"""
SORTS = (
    "of clients: client, lag, published, delivered, in-flight, since, rate; of topics: records, rate, topic"
)
EXAMPLES = """\
examples:
  rumqd ask status
  rumqd ask clients --client 'pump-*' --sort lag --limit 10
  rumqd ask topics --topic 'plant/#' --sort rate
  rumqd ask disconnect --client pump-7           its session stays; drop: that goes too
  rumqd ask ledger --client pump-7 --topic plant/7/temp
  rumqd ask ledger --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question", choices=("status", "clients", "topics", "ledger", "disconnect", "drop"))
    parser.add_argument(
        "-d", "--data", metavar="DIR", default="rumq-data", help="its data directory [rumq-data]"
    )
    parser.add_argument(
        "--client", metavar="ID", help="only this client; of clients also a pattern, 'pump-*' [all]"
    )
    parser.add_argument("--user", metavar="NAME", help="only clients of this user [all]")
    parser.add_argument("--sort", metavar="KEY", help=f"{SORTS} [the first]")
    parser.add_argument("--limit", metavar="N", type=int, default=100, help="clients or topics at most [100]")
    parser.add_argument("-t", "--topic", metavar="TOPIC", help="only this topic; of topics a filter [all]")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """Returns 0, or 1 when no broker answers."""
    from rumq.shards.stats.admin_socket import ask

    if args.question in ("disconnect", "drop") and not args.client:
        print(f"rumqd ask {args.question}: say which client with --client ID", file=sys.stderr)
        return 2
    question = {
        "ask": args.question, "client": args.client, "topic": args.topic, "user": args.user, "sort": args.sort,
        "limit": args.limit,
    }  # fmt: skip
    try:
        reply = ask(args.data, question)
    except PermissionError as fault:
        fault.filename = fault.filename or args.data  # a socket's error names none
        raise
    except OSError as fault:
        print(
            f"rumqd ask: no broker answers for {args.data} ({fault.strerror or fault}): start one with "
            f"`rumqd run --data {args.data}`, or name the directory of one that runs with --data",
            file=sys.stderr,
        )
        return 1
    if "error" in reply:
        print(f"rumqd ask: {reply['error']}", file=sys.stderr)
        return 1
    together(reply, args.question, args.sort, args.limit)
    if args.json:
        print(json.dumps(reply))
    else:
        for line in lines(reply):
            print(line)
    return 0


def together(reply: dict[str, Any], name: str, sort: str | None, limit: int) -> None:
    """Put the rows that several shards gave in one order, no more than asked for."""
    from rumq.shards.stats.admin_listings import CLIENT_SORTS, TOPIC_SORTS, first_rows

    sorts = {"clients": CLIENT_SORTS, "topics": TOPIC_SORTS}.get(name)
    if sorts is None:
        return
    rows = reply[name]
    reply[name] = first_rows(rows, sorts[sort or next(iter(sorts))], limit)
    reply["left_out"] += len(rows) - len(reply[name])


def lines(reply: dict[str, Any]) -> list[str]:
    """One line a row, "name value" pairs."""
    out = []
    for name, value in reply.items():
        if isinstance(value, list):
            out += listed(name, value)
        elif isinstance(value, dict):
            out += [f"{name}_{inner} {each}" for inner, each in value.items()]
        else:
            out.append(f"{name} {value}")
    return out


def listed(name: str, value: list[Any]) -> list[str]:
    if value and not isinstance(value[0], dict):
        return [f"{name} {' '.join(value)}"]
    return [as_pairs(row) for row in value] or [f"{name}: none"]


def as_pairs(row: dict[str, Any]) -> str:
    return "  ".join(
        f"{name} {' '.join(value) if isinstance(value, list) else value}" for name, value in row.items()
    )
