"""`rumqd lake`: finished segments as Parquet files: export, verify, table."""

import argparse

NAME = "lake"
LINE = "finished segments as Parquet files: export, verify, table"
ABOUT = """\
A lake is a folder of Parquet files with every record of the finished segments of a log, once. A running broker
keeps one by itself where the settings say so (log.export_to); this exports by hand, and checks.
"""
EXAMPLES = """\
examples:
  rumqd lake export --to lake --once             what is finished in ./rumq-data, and leave
  rumqd lake export --to s3://bucket/lake        and go on with each segment that is finished
  rumqd lake verify lake && echo sound           every file against the manifest
  rumqd lake verify lake --data rumq-data        and against the log, as far back as that goes
  rumqd lake table delta lake                    as a Delta table, without copying: after each export, or by cron
"""
EXPORT_EXAMPLES = """\
examples:
  rumqd lake export --to lake --once
  rumqd lake export --data /var/lib/rumq --to /mnt/lake --stream plant

exit status: 0 done, or stopped as asked; 1 the lake cannot be written, or holds another log; 3 no data directory
"""
VERIFY_EXAMPLES = """\
examples:
  rumqd lake verify lake
  rumqd lake verify lake --data rumq-data --json

exit status: 0 sound; 1 something does not fit, which is told
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)

    def command(name: str, line: str, epilog: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=line,
            description=line,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    export = command("export", "export finished segments, each record once", EXPORT_EXAMPLES)
    export.add_argument("-d", "--data", metavar="DIR", default="rumq-data", help="[rumq-data]")
    export.add_argument(
        "--to", metavar="FOLDER", required=True, help="a folder, or a URI such as s3://bucket/lake"
    )
    export.add_argument(
        "--stream", metavar="NAME", action="append", help="only this stream; may be given again [all]"
    )
    export.add_argument("--once", action="store_true", help="leave when all that is finished is exported")
    export.add_argument(
        "--keep", metavar="SECONDS", type=int, default=7200,
        help="so long files that were merged stay, for queries that read them [7200]",
    )  # fmt: skip
    export.add_argument("--events-format", choices=("auto", "human", "json"), default="auto", help="[auto]")
    export.add_argument(
        "--events-level", choices=("debug", "info", "warning", "error"), default="info", help="[info]"
    )
    # A broker's own exporter: it notes what is exported for retention, and ends when the broker is gone.
    export.add_argument("--for-broker", action="store_true", help=argparse.SUPPRESS)
    export.set_defaults(run=run_export)

    verify = command(
        "verify", "check every file against the manifest; exit status 0 if all fits, else 1", VERIFY_EXAMPLES
    )
    verify.add_argument("folder", metavar="FOLDER", help="the lake: a folder or a URI")
    verify.add_argument(
        "-d", "--data", metavar="DIR", help="the log that it was made from, to check against [none]"
    )
    verify.add_argument("--json", action="store_true", help="one JSON object a finding")
    verify.set_defaults(run=run_verify)

    table = command(
        "table",
        "register the files as a Delta table; nothing is copied",
        "example:\n  rumqd lake table delta lake",
    )
    table.add_argument("kind", choices=("delta",), help="the format of the table's log")
    table.add_argument(
        "folder", metavar="FOLDER", help="the lake: a folder or a URI; the table has the same path"
    )
    table.set_defaults(run=run_table)


def run_table(args: argparse.Namespace) -> int:
    from rumq.cli.analytics.lake_table import register_table

    return register_table(args.folder)


def run_export(args: argparse.Namespace) -> int:
    from rumq.cli.analytics.lake_export import export

    return export(args)


def run_verify(args: argparse.Namespace) -> int:
    from rumq.cli.analytics.lake_verify import print_findings

    return print_findings(args.folder, args.data, as_json=args.json)
