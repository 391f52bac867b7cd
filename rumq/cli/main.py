"""`rumqd`: one parser for all commands, dispatch, exit status.

`commands` has the table of commands. A command's module is imported when it is parsed, its heavy modules when it
runs, so that help appears at once.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module

from rumq.cli.commands import COMMANDS, Command
from rumq.cli.parsers import LazyParser, every_command
from rumq.errors import ConfigError, DataDirectoryError, RumqError

OK, FAILED, REFUSED, DATA_IN_USE = 0, 1, 2, 3

ABOUT = """\
rumq is an MQTT broker in which every topic is a log: it stores what was published, and a subscription may start
in the past. Without a command, rumqd serves MQTT on localhost:1883 and stores its log in ./rumq-data.
"""

EXAMPLES = """\
try it, in three terminals:
  rumqd                                          serve MQTT 3.1.1 and 5 on localhost:1883
  rumqd sub -v 'plant/#'                         print messages
  rumqd pub plant/7/temp -m 21.5 -q 1            publish; returns once it is on the broker's disk

then:
  rumqd sub -v 'plant/#' --from earliest         replay from the first record, then live
  rumqd sub -v 'plant/#' --from -1h              replay the last hour, then live
  rumqd log ls                                   streams and segments; the broker may run or not
  rumqd config --example > config.toml           every setting with default and unit
  rumqd run --config config.toml --port 1884     serve with them; flags override the file

exit status: 0 done, or stopped by a signal; 2 invalid arguments or settings; 3 the data directory is in use or
unusable; 1 any other error
`rumqd COMMAND --help` has details.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    args = lazy_parser().parse_args(normalize_arguments(sys.argv[1:] if argv is None else argv))
    try:
        return int(args.run(args))
    except BaseException as error:
        if (status := maybe_exit_status(only_one(error))) is None:
            raise
        return status


def maybe_exit_status(error: BaseException) -> int | None:
    """Print an error that has a message for the operator, and return its exit status; None for a bug."""
    match error:
        case BrokenPipeError():
            # `rumqd log read | head`: without this Python would report the closed pipe again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        case KeyboardInterrupt():
            return FAILED
        case RumqError():
            for line in str(error).splitlines():
                print(f"rumqd: {line}", file=sys.stderr)
            return {ConfigError: REFUSED, DataDirectoryError: DATA_IN_USE}.get(type(error), FAILED)
        case PermissionError():
            from rumq.cli import access_denied

            print(f"rumqd: {access_denied.sentence(error)}", file=sys.stderr)
            return FAILED
    return None


def only_one(error: BaseException) -> BaseException:
    """The exception in a group of one, which is how errors leave a nursery."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def normalize_arguments(argv: Sequence[str]) -> list[str]:
    """Insert the default command `run`, and join `--from -1h`, whose value argparse would take for a flag."""
    arguments = list(argv)
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version")):
        arguments.insert(0, "run")
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] in ("--from", "--until", "--start"):
            joined[-1] = f"{joined[-1]}={argument}"
        else:
            joined.append(argument)
    return joined


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands in it."""
    parser = lazy_parser()
    for _ in every_command(parser):
        pass
    return parser


def lazy_parser() -> LazyParser:
    """The parser, whose commands get their arguments when they are used."""
    parser = LazyParser(
        prog="rumqd", description=ABOUT, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--version",
        action="store_const",
        const=version_of,
        dest="run",
        help="print the version and whether kernels are compiled",
    )
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for command in COMMANDS:
        commands.add_parser(
            command.name,
            help=command.line,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=command.h_is_help,
            allow_abbrev=False,
            fill=partial(fill, command),
        )
    return parser


def fill(command: Command, parser: argparse.ArgumentParser) -> None:
    """Give a command's parser its help and its arguments."""
    module = import_module(f"rumq.cli.{command.module}")
    parser.description, parser.epilog = module.ABOUT, module.EXAMPLES
    if not command.h_is_help:
        parser.add_argument("--help", action="help", help="show this help and exit")
    module.add_arguments(parser)
    if hasattr(module, "run"):
        parser.set_defaults(run=module.run)


def version_of(_: argparse.Namespace) -> int:
    from rumq.cli.print_version import print_version

    return print_version(as_json=False)
