"""`rumqd spark`: jobs on the log, a check of Spark's installation, offsets of a checkpoint. docs/guides/spark.md."""

import argparse
import json
import os
import sys

from rumq.cli.analytics import spark_run

ABOUT = "Run jobs on the log, check Spark's installation, and print the offsets of a query of format rumq."
EXAMPLES = """\
examples:
  rumqd spark run --list                         list the jobs
  rumqd spark doctor                             Java, packages, and the Python that workers will run
  rumqd spark offsets checkpoints/hourly         JSON for startingOffsets of a new query

exit status: 0 done, nothing is wrong; 1 a fault, which is printed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)
    doctor = commands.add_parser("doctor", help="check Spark's installation, with remedies")
    doctor.add_argument("--json", action="store_true", help="one JSON object a finding")
    doctor.set_defaults(run=run_doctor)
    offsets = commands.add_parser("offsets", help="print the offsets of a query: its next lsns")
    offsets.add_argument("checkpoint", metavar="CHECKPOINT", help="the query's checkpointLocation")
    offsets.set_defaults(run=run_offsets)
    jobs = commands.add_parser(
        "run", help="run a job on the log", description=spark_run.ABOUT, epilog=spark_run.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    spark_run.add_arguments(jobs)


def run_doctor(args: argparse.Namespace) -> int:
    from rumq.spark.runtime.doctor import examine

    wrong = 0
    for finding in examine(os.environ):
        wrong += bool(finding.do)
        if args.json:
            print(json.dumps({"ok": not finding.do, "what": finding.what, "do": finding.do or None}), flush=True)
            continue
        print(
            f"wrong: {finding.what}\n   do: {finding.do}" if finding.do else f"well: {finding.what}",
            flush=True,
        )
    return 1 if wrong else 0


def run_offsets(args: argparse.Namespace) -> int:
    """A line of JSON for each source of the query."""
    from rumq.spark.runtime.checkpoint import checkpoint_progress

    found = checkpoint_progress(args.checkpoint)
    for lsns in found.lsns:
        print(json.dumps(lsns))
    more = ", and one more has begun, which will be done as it was planned" if found.unfinished else ""
    print(f"batch {found.batch} is done{more}", file=sys.stderr)
    return 0
