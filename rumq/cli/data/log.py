"""`rumqd log`: inspect a data directory, with its broker on or off. It takes no lock and writes nothing."""

import argparse

from rumq.cli.client.connection_flags import positive
from rumq.cli.message_format import HELP, JSON
from rumq.terminal.progress import add_progress_flag

ABOUT = """\
Inspect a data directory, with its broker on or off: it locks and writes nothing. It reads committed records, which
may be a moment behind a running broker.
"""
EXAMPLES = """\
examples:
  rumqd log ls                                   streams, partitions and segments of ./rumq-data
  rumqd log ls --data /var/lib/rumq --json
  rumqd log read --topic 'plant/#' --from -1h    as `rumqd sub --from`, without a broker
  rumqd log read --topic plant/7/temp --from 1000 --count 10 --json
  rumqd log export --topic 'plant/#' --from -1d --to plant.parquet
  rumqd log verify && echo sound                 every checksum of every record
"""
READ_EXAMPLES = f"""\
examples:
  rumqd log read --from earliest
  rumqd log read --topic 'plant/#' --from -1h
  rumqd log read --topic plant/7/temp --from 1000 --count 10 -F '%o %I %p'

{HELP}
"""
EXPORT_EXAMPLES = """\
examples:
  rumqd log export > all.jsonl
  rumqd log export --topic 'plant/#' --from 2026-11-01 --until 2026-12-01 --to november.parquet
  rumqd log export --topic plant/7/temp --from 1000 --until 2000

exit status: 0 done; 1 unreadable records, which are printed, or the file could not be written
"""
DEFAULT_FORMAT = "%I %t %p"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)

    def command(name: str, line: str, epilog: str = "") -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=line,
            description=line,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.add_argument("-d", "--data", metavar="DIR", default="rumq-data", help="[rumq-data]")
        return made

    ls = command("ls", "list streams, partitions and segments: records, bytes, times")
    ls.add_argument("--json", action="store_true", help="one JSON object a segment")
    ls.set_defaults(run=run_ls)

    read = command("read", "print records, in the order of each partition", READ_EXAMPLES)
    read.add_argument("-t", "--topic", metavar="FILTER", default="#", help="only topics that it matches [#]")
    read.add_argument("--stream", metavar="NAME", help="only of this stream [all]")
    read.add_argument(
        "--from", dest="start", metavar="FROM", default="earliest",
        help="earliest, -1h, an RFC 3339 time, or an offset of one topic [earliest]",
    )  # fmt: skip
    read.add_argument("-C", "--count", type=positive, metavar="N", help="no more than N records")
    lines = read.add_mutually_exclusive_group()
    lines.add_argument("-F", "--format", metavar="FORMAT", default=DEFAULT_FORMAT, help="output format, see below")
    lines.add_argument("--json", action="store_const", const=JSON, dest="format", help="-F %%j")
    read.set_defaults(run=run_read)

    saved = command("export", "write records to a file, as JSON lines or Parquet", EXPORT_EXAMPLES)
    saved.add_argument("-t", "--topic", metavar="FILTER", default="#", help="only topics that it matches [#]")
    saved.add_argument(
        "--from",
        dest="start",
        metavar="FROM",
        default="earliest",
        help="start, as for `rumqd log read` [earliest]",
    )
    saved.add_argument("--until", metavar="UNTIL", help="end, exclusive, in the same form [end of the log]")
    saved.add_argument("--to", metavar="FILE", default="-", help="output file, - for standard output [-]")
    saved.add_argument(
        "--format",
        choices=("jsonl", "parquet"),
        help="[parquet for a name in .parquet, else jsonl]",
    )
    add_progress_flag(saved)
    saved.set_defaults(run=run_export)

    verify = command("verify", "check every checksum; exit status 0 if all is sound, 1 if anything is damaged")
    verify.add_argument("--json", action="store_true", help="one JSON object a finding")
    add_progress_flag(verify)
    verify.set_defaults(run=run_verify)


def run_ls(args: argparse.Namespace) -> int:
    from rumq.cli.data.log_printing import print_segments

    return print_segments(args.data, as_json=args.json)


def run_read(args: argparse.Namespace) -> int:
    from rumq.cli.data.log_printing import print_records

    return print_records(args.data, args.topic, args.start, args.stream, args.count, args.format)


def run_export(args: argparse.Namespace) -> int:
    from rumq.cli.data.log_export import export

    parquet = args.format == "parquet" if args.format else args.to.endswith(".parquet")
    return export(args.data, args.topic, args.start, args.until, args.to, parquet=parquet, progress=args.progress)


def run_verify(args: argparse.Namespace) -> int:
    from rumq.cli.data.log_printing import print_verdicts

    return print_verdicts(args.data, as_json=args.json, progress=args.progress)
