"""`rumqd ask`: every query and action of the admin interface, over a broker's socket or its gateway."""

from __future__ import annotations

import argparse
import io
import sys
from functools import partial
from typing import TYPE_CHECKING

from rumq.cli.ask.source_flags import add_source_flags, source_of

if TYPE_CHECKING:
    import msgspec

    from rumq.admin.requests import Request
    from rumq.cli.ask.questions import Question
    from rumq.cli.ask.source import Source

ABOUT = """\
Ask a running broker, or have it do something: over the socket in its data directory, or over REST (--url, --context).
The answer is a table; --json prints the answer as REST gives it. What destroys something (drop, ban, trim, shutdown)
asks for confirmation on a terminal; without one, or with --yes, it is done at once. `rumqd ask QUESTION --help` lists
the flags of a question.
"""
EXAMPLES = """\
examples:
  rumqd ask status
  rumqd ask clients --client 'pump-*' --sort lag --limit 10
  rumqd ask client --client pump-7               one session in detail
  rumqd ask topics --topic 'plant/#' --sort rate --watch 2
  rumqd ask disconnect --client pump-7           keeps the session; `drop` deletes it, too
  rumqd ask ledger --client pump-7 --topic plant/7/temp
  rumqd ask ledger --json
  rumqd ask status --url https://broker:8080 --token-file token --cafile ca.pem
  rumqd ask status --context plant               a broker of `rumqd context ls`

exit status: 0 answered (an action says to how many things it applied), or --watch was interrupted; 1 no broker answers,
it refuses, or the confirmation was not given; 2 invalid arguments
"""
OK, NOT_DONE = 0, 1
COMMON = {"data", "url", "context", "token_file", "cafile", "json", "wide"}  # of every question


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from rumq.cli.ask.questions import lines

    add_common_flags(parser)
    commands = parser.add_subparsers(metavar="QUESTION", title="questions", dest="question", required=True)
    for name, line in lines().items():
        commands.add_parser(
            name, help=line, description=line[:1].upper() + line[1:] + ".", fill=partial(fill, name),
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        )  # fmt: skip


def fill(name: str, parser: argparse.ArgumentParser) -> None:
    """The flags of one question."""
    from rumq.cli.ask.questions import question_of
    from rumq.cli.ask.request_flags import add_request_flags

    question = question_of(name)
    add_request_flags(parser, question.request)
    if question.destroys:
        parser.add_argument("-y", "--yes", action="store_true", help="do it without a question")
    if not question.is_action:
        parser.add_argument("--watch", metavar="SECONDS", type=interval, help="ask again and again, until interrupted")
    add_common_flags(parser)


def add_common_flags(parser: argparse.ArgumentParser) -> None:
    """Before the question and behind it; suppressed defaults, so that the one does not undo the other."""
    add_source_flags(parser)
    add = parser.add_argument
    add("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON object: the answer of REST")
    add("--wide", action="store_true", default=argparse.SUPPRESS, help="all columns, at any width")


def interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text}: expected seconds, 0.1 to 86400")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Returns the exit status. raises: RumqError"""
    import trio

    from rumq.cli.ask.questions import question_of
    from rumq.cli.ask.request_flags import request_of

    tolerate_other_encodings()
    question = question_of(args.question)
    request = request_of(args, question.request)
    source = source_of(args)
    if question.destroys and not args.yes and not confirmed(question, request, source):
        print("rumqd ask: nothing was done", file=sys.stderr)
        return NOT_DONE
    try:
        return trio.run(ask, args, question, request, source)
    except KeyboardInterrupt:
        if getattr(args, "watch", None) is None:
            raise
        return OK


def tolerate_other_encodings() -> None:
    """A client id may have characters that the terminal's encoding has not."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


async def ask(args: argparse.Namespace, question: Question, request: Request, source: Source) -> int:
    import trio
    from msgspec import structs

    from rumq.admin.answers import Events

    is_first = True
    is_json, is_wide = getattr(args, "json", False), getattr(args, "wide", False)
    seconds = getattr(args, "watch", None)
    try:
        while True:
            before = trio.current_time()
            answer = await source.ask(question, request)
            took = trio.current_time() - before
            is_new = not isinstance(answer, Events) or is_first or bool(answer.events)
            if seconds is not None and not is_json and sys.stdout.isatty() and not isinstance(answer, Events):
                print("\x1b[H\x1b[2J", end="")
            if is_new:
                show(answer, is_json=is_json, is_wide=is_wide, took=took if question.name == "ping" else None)
            if seconds is None:
                return OK
            if isinstance(answer, Events):
                request = structs.replace(request, after=answer.cursor)  # those that follow
            elif not is_json and not sys.stdout.isatty():
                print(flush=True)
            is_first = False
            await trio.sleep(seconds)
    finally:
        with trio.CancelScope(shield=True):
            await source.close()


def show(answer: msgspec.Struct, *, is_json: bool, is_wide: bool, took: float | None) -> None:
    import msgspec

    if is_json:
        print(msgspec.json.encode(answer).decode(), flush=True)
        return
    from rumq.cli.ask.tables import text_of
    from rumq.terminal.units import age

    width = 0
    if sys.stdout.isatty() and not is_wide:
        import shutil

        width = shutil.get_terminal_size().columns
    for line in text_of(answer, is_wide=is_wide):
        print(line if not width or len(line) <= width else line[: width - 1] + "…")
    if took is not None:
        print(f"answered in {age(took)}")
    sys.stdout.flush()


def confirmed(question: Question, request: Request, source: Source) -> bool:
    """On a terminal the operator types yes. Without one a program asks, which knows what it does."""
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return True
    import msgspec

    what = " ".join(f"{k} {v}" for k, v in msgspec.to_builtins(request).items() if v not in (None, ""))
    prompt = f"{question.name} {what} of {source.name}: {question.destroys}. Type yes to go on: "
    print(prompt, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "yes"
