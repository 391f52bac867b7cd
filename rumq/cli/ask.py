"""`rumqd ask`: ask a running broker about itself, its clients, and what was not delivered."""

import argparse
import json
import sys
from typing import Any

NAME = "ask"
LINE = "ask a running broker: status, clients, ledger"
ABOUT = """\
Ask the broker that holds a data directory. `clients` says for each session what it published, what was delivered,
what is in flight and how many records it is behind; `ledger` says what was not delivered, by reason, client and topic:
expired, over_limit, retention, backlog_records_max, damaged, no_permission. With --client it also says what is pending,
by topic: published = delivered + pending + counted. `status` counts messages that shards handed over to each other.
"""
EXAMPLES = """\
examples:
  rumqd ask status
  rumqd ask clients --client pump-7
  rumqd ask ledger --client pump-7 --topic plant/7/temp
  rumqd ask ledger --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question", choices=("status", "clients", "ledger"))
    parser.add_argument(
        "-d", "--data", metavar="DIR", default="rumq-data", help="its data directory [rumq-data]"
    )
    parser.add_argument("--client", metavar="ID", help="only this client [all]")
    parser.add_argument("-t", "--topic", metavar="TOPIC", help="only this topic, of the ledger [all]")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """Returns 0, or 1 when no broker answers."""
    from rumq.shards.counter import ask

    question = {"ask": args.question, "client": args.client, "topic": args.topic}
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
    if args.json:
        print(json.dumps(reply))
    else:
        for line in lines(reply):
            print(line)
    return 0


def lines(reply: dict[str, Any]) -> list[str]:
    """One line a row, "name value" pairs."""
    out = []
    for name, value in reply.items():
        if isinstance(value, list):
            out += [as_pairs(row) for row in value] or [f"{name}: none"]
        else:
            out.append(f"{name} {value}")
    return out


def as_pairs(row: dict[str, Any]) -> str:
    return "  ".join(
        f"{name} {' '.join(value) if isinstance(value, list) else value}" for name, value in row.items()
    )
