"""`rumqd spark run`: run a job of rumq.spark.jobs. Options and addresses are checked before Spark starts."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from rumq.spark.jobs import JOBS
from rumq.table.errors import BadOption

ABOUT = """\
Run a job on the log with Spark on this machine, and print, publish or store the result as Parquet files.
Without --checkpoint each run reads the whole log. With it each record is processed once, over any number of runs:
--once reads new records and exits (for cron), --every continues until stopped.
"""
EXAMPLES = """\
examples:
  rumqd spark run --list                         list the jobs
  rumqd spark run downsample --help              the options of one
  rumqd spark run sessions --by client_id --gap '5 minutes'
  rumqd spark run export --to archive --checkpoint checkpoints/archive --once

exit status: 0 done; 1 the job failed; 2 invalid arguments
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="list the jobs")
    parser.add_argument("job", nargs="?", metavar="JOB", choices=[*JOBS], help=", ".join(JOBS))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="see rumqd spark run JOB --help")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.list or args.job is None:
        for name, line in JOBS.items():
            print(f"{name:<12}{line}")
        return 0
    try:
        from rumq.spark.runtime.doctor import check_java

        job = import_module(f"rumq.spark.jobs.{args.job}")
    except ModuleNotFoundError as fault:
        raise BadOption("job", args.job, f"{fault.name} installed: pip install 'rumq[spark]'") from None
    chosen = parse_options(args.job, job, args.arguments)
    check_options(chosen)
    if hasattr(job, "check"):
        job.check(chosen)
    check_job_columns(job, chosen)
    check_java()
    return run_job(job, chosen)


def parse_options(name: str, job: ModuleType, arguments: Sequence[str]) -> argparse.Namespace:
    """Common options, and those of this job."""
    parser = argparse.ArgumentParser(
        prog=f"rumqd spark run {name}", description=job.__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    job.add_arguments(parser.add_argument_group("options of this job"))
    add_source_arguments(parser)
    add_output_arguments(parser)
    add_execution_arguments(parser, name)
    return parser.parse_args(arguments)


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    read = parser.add_argument_group("source")
    place = read.add_mutually_exclusive_group()
    place.add_argument("--data", metavar="DIR", help="a data directory, with the broker on or off [rumq-data]")
    place.add_argument("--broker", metavar="URL", help="Flight server of a broker, grpc://host:8815")
    read.add_argument("--subscribe", metavar="FILTERS", help="MQTT topic filters, separated by commas [all topics]")
    read.add_argument(
        "--from",
        dest="from_",
        metavar="WHEN",
        help="start: earliest, latest, tail:1000, -10m, a time [earliest]",
    )
    read.add_argument("--until", metavar="WHEN", help="end: -10m or a time; not for streams [end of the log]")
    read.add_argument(
        "--topics",
        metavar="PATTERN",
        help="only topics like 'plant/{plant}/dev/{device}', whose levels become columns",
    )
    read.add_argument(
        "--json",
        metavar="SCHEMA",
        help="columns of the payload, 'time timestamp, celsius double'; drops payloads that do not match",
    )
    read.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other option of the source (docs/guides/spark.md)",
    )


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    out = parser.add_argument_group("output")
    out.add_argument(
        "--to",
        metavar="URL|DIR",
        help="mqtt://host:1883, or a folder for Parquet files [print a line of JSON per row]",
    )
    out.add_argument(
        "--topic", metavar="TOPIC", help="topic to publish to, with columns in braces: 'weather/{city}/daily'"
    )
    out.add_argument(
        "--to-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other option of the sink: qos=0, retain=true",
    )
    out.add_argument(
        "--bad",
        metavar="TOPIC|DIR",
        help="dead letters: payloads that do not match --json, with place and reason",
    )
    out.add_argument(
        "--other-broker",
        action="store_true",
        help="--to is another broker than the source: topics may be the same",
    )


def add_execution_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    go = parser.add_argument_group("execution")
    go.add_argument("--checkpoint", metavar="DIR", help="folder for the progress of the query")
    pace = go.add_mutually_exclusive_group()
    pace.add_argument("--once", action="store_true", help="process records since the last run, and exit")
    pace.add_argument("--every", metavar="TIME", help="continue until stopped, polling at this interval: 1s")
    go.add_argument("--name", default=name, help=f"query name, for lag and Spark's UI [{name}]")
    go.add_argument("--lag", metavar="URL", help="publish the query's lag there, retained: mqtt://host:1883")
    go.add_argument("--master", default="local[*]", help="Spark master [local[*], the cores of this machine]")
    go.add_argument(
        "--environment",
        metavar="FILE",
        help="archive of the Python of a cluster's executors (docs/guides/spark-cluster.md)",
    )


def check_options(args: argparse.Namespace) -> None:
    """raises: BadOption, UnknownOption, and the connection error of an unreachable broker"""
    import time

    from rumq.records.log_partitions import readable_partitions
    from rumq.sink.broker_check import reach
    from rumq.sink.sink_options import parse_sink_options
    from rumq.table.options import parse, seconds

    if args.checkpoint and not (args.once or args.every):
        raise BadOption("checkpoint", args.checkpoint, "--once or --every 1s as well")
    if (args.once or args.every) and not args.checkpoint:
        raise BadOption("once" if args.once else "every", args.every or "", "--checkpoint DIR as well")
    if args.checkpoint and args.until:
        raise BadOption("until", args.until, "no --checkpoint: a stream has no end")
    if args.bad and not args.json:
        raise BadOption("bad", args.bad, "--json SCHEMA as well, to tell good payloads from bad ones")
    if args.topics:
        from rumq.spark.job_kit.dataframe_columns import topic_parts

        topic_parts(args.topics)
    args.every_s = seconds("every", args.every) if args.every else 0.0
    args.source = source_options(args)
    readable_partitions(parse(args.source, now_us=time.time_ns() // 1000, streaming=bool(args.checkpoint)))
    args.sink_options = None
    args.sink = dict(pair("to-option", text) for text in args.to_option)
    if args.to and args.to.startswith(("mqtt:", "mqtts:")):
        args.sink["broker"] = args.to
        args.sink_options = parse_sink_options(args.sink)
        reach(args.sink_options)
    elif args.to and "://" in args.to and args.to.startswith("http"):
        raise BadOption("to", args.to, "mqtt://host:1883, mqtts://host:8883, or a folder")
    elif args.topic or args.sink:
        raise BadOption("topic" if args.topic else "to-option", args.topic or "", "--to mqtt://host:1883 as well")
    if args.bad and args.to is None:
        raise BadOption("bad", args.bad, "--to as well: a broker (then --bad is a topic) or a folder")
    if args.lag:
        reach(parse_sink_options({"broker": args.lag}))


def check_job_columns(job: ModuleType, args: argparse.Namespace) -> None:
    """raises: NoColumn for a column that neither the log nor --topics nor --json has"""
    from rumq.spark.job_kit.known_columns import known_columns
    from rumq.table.errors import NoColumn
    from rumq.table.options import near

    known = known_columns(args.source, args.topics, args.json)
    for name in job.columns(args) if known is not None and hasattr(job, "columns") else ():
        if known is not None and name not in known:
            raise NoColumn(name, near(name, {each: each for each in known}))


def source_options(args: argparse.Namespace) -> dict[str, str]:
    """raises: BadOption"""
    found = {"broker": args.broker} if args.broker else {"path": args.data or "rumq-data"}
    if args.subscribe:
        found["subscribe"] = args.subscribe
    if args.from_:
        plain = args.from_ in ("earliest", "latest") or args.from_.startswith(("tail:", "{"))
        found["startingOffsets" if plain else "startingTimestamp"] = args.from_
    if args.until:
        found["endingTimestamp"] = args.until
    return found | dict(pair("option", text) for text in args.option)


def pair(flag: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadOption(flag, text, "NAME=VALUE")
    return name, value


def run_job(job: ModuleType, args: argparse.Namespace) -> int:
    from rumq.spark.jobs.runner import run_in
    from rumq.spark.runtime.spark_session import session

    spark = session(
        args.name,
        args.master,
        environment=args.environment,
        lag=args.lag,
        spark_ui_enabled="false",
        spark_log_level="OFF",  # this command prints the fault as one sentence
    )
    if threading.current_thread() is threading.main_thread():
        # Spark's own handler calls the JVM during another call, and prints a trace.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # py4j would log a trace for a call that Ctrl-C interrupts; its other faults are exceptions as well.
    logging.getLogger().addFilter(lambda record: "while sending command" not in record.getMessage())
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    said = run_in(spark, job, args)
    if said:
        print(f"rumqd: {said}", file=sys.stderr)
    return 0
