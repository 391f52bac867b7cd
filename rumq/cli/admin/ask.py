"""`rumqd ask`: status of a running broker, its clients, topics and undelivered messages; close connections."""

import argparse
import json
import sys

ABOUT = """\
Query the broker that runs on a data directory. `clients` lists each session with its address, published, delivered and
in-flight messages, backlog and rate; `topics` lists topics with their number of records; `ledger` counts messages that
were not delivered, by reason (expired, over_limit, retention, backlog_records_max, damaged, no_permission), client and
topic. With --client it also counts pending messages by topic: published = delivered + pending + not delivered. `status`
shows messages forwarded between shards, disk usage and when the disk will be full. `disconnect` closes a client's
connection, `drop` also deletes its session.
"""
SORTS = "for `clients`: client, lag, published, delivered, in-flight, since, rate; for `topics`: records, rate, topic"
EXAMPLES = """\
examples:
  rumqd ask status
  rumqd ask clients --client 'pump-*' --sort lag --limit 10
  rumqd ask topics --topic 'plant/#' --sort rate
  rumqd ask disconnect --client pump-7           keeps the session; `drop` deletes it, too
  rumqd ask ledger --client pump-7 --topic plant/7/temp
  rumqd ask ledger --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question", choices=("status", "clients", "topics", "ledger", "disconnect", "drop"))
    parser.add_argument(
        "-d", "--data", metavar="DIR", default="rumq-data", help="data directory of the broker [rumq-data]"
    )
    parser.add_argument(
        "--client", metavar="ID", help="only this client; for `clients` also a pattern, 'pump-*' [all]"
    )
    parser.add_argument("--user", metavar="NAME", help="only clients of this user [all]")
    parser.add_argument("--sort", metavar="KEY", help=f"{SORTS} [the first]")
    parser.add_argument("--limit", metavar="N", type=int, default=100, help="clients or topics at most [100]")
    parser.add_argument(
        "-t", "--topic", metavar="TOPIC", help="only this topic; for `topics` a topic filter [all]"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """Returns the exit status: 1 if no broker answers, 2 for arguments."""
    from rumq.shards.stats.admin_socket import ask

    if args.question in ("disconnect", "drop") and not args.client:
        print(f"rumqd ask {args.question}: --client ID is missing", file=sys.stderr)
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
    merge_rows(reply, args.question, args.sort, args.limit)
    if args.json:
        print(json.dumps(reply))
    else:
        for line in lines(reply):
            print(line)
    return 0


def merge_rows(reply: dict[str, object], name: str, sort: str | None, limit: int) -> None:
    """Sort the rows of all shards together, and keep as many as asked for."""
    from rumq.admin.merging import CLIENT_SORTS, TOPIC_SORTS, first_rows

    sorts = {"clients": CLIENT_SORTS, "topics": TOPIC_SORTS}.get(name)
    if sorts is None:
        return
    rows, left_out = reply[name], reply["left_out"]
    assert isinstance(rows, list) and isinstance(left_out, int)
    first = first_rows(rows, sorts[sort or next(iter(sorts))], limit)
    reply[name], reply["left_out"] = first, left_out + len(rows) - len(first)


def lines(reply: dict[str, object]) -> list[str]:
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


def listed(name: str, value: list[object]) -> list[str]:
    if value and not isinstance(value[0], dict):
        return [f"{name} {' '.join(map(str, value))}"]
    return [as_pairs(row) for row in value] or [f"{name}: none"]


def as_pairs(row: object) -> str:
    assert isinstance(row, dict)
    return "  ".join(
        f"{name} {' '.join(value) if isinstance(value, list) else value}" for name, value in row.items()
    )
