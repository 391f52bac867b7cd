"""`rumqd context`: brokers by name, for `rumqd ask` and `rumqd top`. A token is never printed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from rumq.errors import RumqError

if TYPE_CHECKING:
    from rumq.cli.ask.contexts import Contexts, SavedContext

ABOUT = """\
Keep the addresses of brokers, and the tokens of their gateways, under names. They are stored in
$XDG_CONFIG_HOME/rumq/contexts.json (~/.config/rumq/contexts.json), which only you can read. No command prints a token.
`rumqd ask` and `rumqd top` use the context that is named by --context, by RUMQ_CONTEXT, or that is in use.
"""
EXAMPLES = """\
examples:
  rumqd context add plant --url https://broker.lan:8080 --cafile ca.pem --token-stdin < token
  rumqd context add here --data /var/lib/rumq
  rumqd context use plant                        what `rumqd ask` asks from now on
  rumqd context use --none                       ./rumq-data again
  rumqd context ls
  rumqd context show plant
  rumqd context rm here

exit status: 0 done; 1 any other error; 2 invalid arguments
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)

    def command(name: str, line: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=line, description=line, allow_abbrev=False)
        made.set_defaults(run=partial(run, name))
        return made

    add = command("add", "add a broker, or replace it")
    add.add_argument("name", metavar="NAME", help="letters, digits, . _ and -")
    where = add.add_mutually_exclusive_group(required=True)
    where.add_argument("--url", metavar="URL", default="", help="its gateway: http[s]://host:port")
    where.add_argument("-d", "--data", metavar="DIR", default="", help="its data directory on this machine")
    token = add.add_mutually_exclusive_group()
    token.add_argument(
        "--token-file",
        metavar="FILE",
        default="",
        help="read the token from there at each use, its first line",
    )
    token.add_argument("--token-stdin", action="store_true", help="store the token, one line of standard input")
    add.add_argument("--cafile", metavar="FILE", default="", help="PEM file of trusted authorities [the system's]")
    listed = command("ls", "list them")
    listed.add_argument("--json", action="store_true", help="one JSON object a context")
    use = command("use", "use one where none is named")
    which = use.add_mutually_exclusive_group(required=True)
    which.add_argument("name", metavar="NAME", nargs="?")
    which.add_argument("--none", action="store_true", help="use none")
    command("rm", "remove one").add_argument("name", metavar="NAME")
    show = command("show", "one of them, without its token")
    show.add_argument("name", metavar="NAME", nargs="?", help="[the one in use]")
    show.add_argument("--json", action="store_true", help="one JSON object")


def run(command: str, args: argparse.Namespace) -> int:
    """raises: RumqError"""
    from rumq.cli.ask import contexts as c

    path = c.path_of(os.environ)
    known = c.load(path)
    match command:
        case "add":
            known.contexts[checked_name(args.name)] = context_of(args)
            c.save(path, known)
        case "use":
            if args.name is not None:
                c.context_named(known, args.name)
            known.current = args.name or ""
            c.save(path, known)
        case "rm":
            c.context_named(known, args.name)
            del known.contexts[args.name]
            if known.current == args.name:
                known.current = ""
            c.save(path, known)
        case "ls":
            print_all(known, as_json=args.json)
        case "show":
            name = args.name or known.current
            if not name:
                raise RumqError("no context is in use: rumqd context use NAME")
            print_one(name, c.context_named(known, name), known, as_json=args.json)
    return 0


def checked_name(name: str) -> str:
    from rumq.cli.ask.contexts import NAME

    if NAME.fullmatch(name) is None:
        raise RumqError(f"{name!r}: expected a name of letters, digits, . _ and -, at most 64")
    return name


def context_of(args: argparse.Namespace) -> SavedContext:
    """Files are kept with whole paths: a context is used from anywhere."""
    from rumq.cli.ask import contexts as c

    if args.data and (args.token_file or args.token_stdin or args.cafile):
        raise RumqError("a data directory needs neither token nor --cafile: give --url")
    if args.url and not args.url.startswith(("http://", "https://")):
        raise RumqError(f"--url {args.url}: expected http://host:port or https://host:port")
    for file in filter(None, (args.token_file, args.cafile)):
        if not os.path.exists(file):
            raise RumqError(f"{file}: there is no such file")
    token = sys.stdin.readline().strip() if args.token_stdin else ""
    if args.token_stdin and not token:
        raise RumqError("standard input has no token: its first line is empty")
    if (token or args.token_file) and (why := c.exposure(args.url)):
        print(f"rumqd context: warning: {why}", file=sys.stderr)
    return c.SavedContext(
        url=args.url.rstrip("/"), data=os.path.abspath(args.data) if args.data else "", token=token,
        token_file=os.path.abspath(args.token_file) if args.token_file else "",
        cafile=os.path.abspath(args.cafile) if args.cafile else "",
    )  # fmt: skip


def about(name: str, context: SavedContext, known: Contexts) -> dict[str, object]:
    """All but the secret."""
    token = f"of {context.token_file}" if context.token_file else "stored" if context.token else None
    return {
        "name": name, "in_use": name == known.current, "url": context.url or None, "data": context.data or None,
        "token": token, "cafile": context.cafile or None,
    }  # fmt: skip


def print_all(known: Contexts, *, as_json: bool) -> None:
    rows = [about(name, context, known) for name, context in sorted(known.contexts.items())]
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    if not rows:
        print("no contexts: rumqd context add NAME --url URL")
        return
    width = max(len(str(row["name"])) for row in rows)
    for row in rows:
        print(f"{'*' if row['in_use'] else ' '} {row['name']:<{width}}  {row['url'] or row['data']}")


def print_one(name: str, context: SavedContext, known: Contexts, *, as_json: bool) -> None:
    row = about(name, context, known)
    if as_json:
        print(json.dumps(row))
        return
    for key, value in row.items():
        print(f"{key:<7} {'-' if value is None else 'yes' if value is True else 'no' if value is False else value}")
