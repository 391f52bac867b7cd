"""`rumqd lake`: finished segments as Parquet files: export, verify, table."""

import argparse

ABOUT = """\
A lake is a folder of Parquet files with every record of the finished segments of a log, once. A running broker
exports if log.export_to is set; this command exports by hand, and verifies.
"""
EXAMPLES = """\
examples:
  rumqd lake export --to lake --once             export finished segments of ./rumq-data and exit
  rumqd lake export --to s3://bucket/lake        continue with each segment that is finished
  rumqd lake verify lake && echo sound           compare every file with the manifest
  rumqd lake verify lake --data rumq-data        and with the log, as far back as it goes
  rumqd lake table delta lake                    register as a Delta table, without copying
"""
EXPORT_EXAMPLES = """\
examples:
  rumqd lake export --to lake --once
  rumqd lake export --data /var/lib/rumq --to /mnt/lake --stream plant

exit status: 0 done, or stopped by a signal; 1 the lake cannot be written, or has another log; 3 no data directory
"""
VERIFY_EXAMPLES = """\
examples:
  rumqd lake verify lake
  rumqd lake verify lake --data rumq-data --json

exit status: 0 sound; 1 differences were found and printed
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
    export.add_argument("--to", metavar="FOLDER", required=True, help="a folder, or a URI such as s3://bucket/lake")
    export.add_argument("--stream", metavar="NAME", action="append", help="only this stream, repeatable [all]")
    export.add_argument("--json", action="store_true", help="with --once: one JSON object")
    export.add_argument("--once", action="store_true", help="exit when all finished segments are exported")
    export.add_argument(
        "--keep", metavar="SECONDS", type=int, default=7200,
        help="how long merged files stay for running queries [7200]",
    )  # fmt: skip
    export.add_argument("--events-format", choices=("auto", "human", "json"), default="auto", help="[auto]")
    export.add_argument("--events-level", choices=("debug", "info", "warning", "error"), default="info", help="[info]")
    # For a broker's sidecar: it writes export markers for retention, and ends with the broker.
    export.add_argument("--for-broker", action="store_true", help=argparse.SUPPRESS)
    export.set_defaults(run=run_export)

    verify = command("verify", "compare every file with the manifest; exit status 0 if sound, else 1", VERIFY_EXAMPLES)
    verify.add_argument("folder", metavar="FOLDER", help="the lake: a folder or a URI")
    verify.add_argument("-d", "--data", metavar="DIR", help="also compare with this log [none]")
    verify.add_argument("--json", action="store_true", help="one JSON object a finding")
    verify.set_defaults(run=run_verify)

    table = command(
        "table",
        "register the files as a Delta table; nothing is copied",
        "example:\n  rumqd lake table delta lake",
    )
    table.add_argument("kind", choices=("delta",), help="the format of the table's log")
    table.add_argument("folder", metavar="FOLDER", help="the lake: a folder or a URI; the table has the same path")
    table.add_argument("--json", action="store_true", help="one JSON object")
    table.set_defaults(run=run_table)


def run_table(args: argparse.Namespace) -> int:
    from rumq.cli.analytics.lake_table import register_table

    return register_table(args.folder, as_json=args.json)


def run_export(args: argparse.Namespace) -> int:
    from rumq.cli.analytics.lake_export import export

    return export(args)


def run_verify(args: argparse.Namespace) -> int:
    from rumq.cli.analytics.lake_verify import print_findings

    return print_findings(args.folder, args.data, as_json=args.json)
