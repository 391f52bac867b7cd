"""`rumqd spark`: jobs on the log, what Spark needs of this machine, and where queries stand. docs/spark.md."""

import argparse
import json
import os
import sys

from rumq.cli.analytics import spark_run

NAME = "spark"
LINE = "Spark: run a job, doctor, offsets of a checkpoint"
ABOUT = (
    "Run jobs on the log, look at what Spark needs of this machine, and where a query of format rumq stands."
)
EXAMPLES = """\
examples:
  rumqd spark run --list                         the jobs that there are
  rumqd spark doctor                             Java, packages, and the Python that workers will run
  rumqd spark offsets checkpoints/hourly         JSON, good for startingOffsets of a new query

exit status: 0 all is well; 1 something is not
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)
    doctor = commands.add_parser("doctor", help="is there all that Spark needs, and what to do")
    doctor.set_defaults(run=run_doctor)
    offsets = commands.add_parser("offsets", help="where a query stands: the lsn that it reads next")
    offsets.add_argument("checkpoint", metavar="CHECKPOINT", help="the query's checkpointLocation")
    offsets.set_defaults(run=run_offsets)
    jobs = commands.add_parser(
        "run", help="run a job on the log", description=spark_run.ABOUT, epilog=spark_run.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    spark_run.add_arguments(jobs)


def run_doctor(_: argparse.Namespace) -> int:
    from rumq.spark.runtime.doctor import examine

    wrong = 0
    for finding in examine(os.environ):
        wrong += bool(finding.do)
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
