"""`rumqd mirror`: publish what one broker or cluster stores to another one. docs/guides/mirrors.md."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from pathlib import Path

from rumq.errors import RumqError

ABOUT = """\
Pull the records of a broker or cluster by lsn over Arrow Flight, and publish them to another one over MQTT 5, until
SIGTERM or SIGINT. Neither side waits for the other one. At least once; exactly once with --once.
"""
EXAMPLES = """\
examples:
  rumqd mirror --name a-to-b --source grpc://a1:8815,grpc://a2:8815 --target mqtt://b1:1883,mqtt://b2:1883 \\
      --source-site a --target-site b --positions /var/lib/rumq-mirror/a-to-b --once
  rumqd mirror ... --subscribe 'plant/#' --prefix a/            only those topics, as a/plant/...

exit status: 0 stopped by a signal; 1 any error at its start; 2 invalid arguments
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--name", required=True, help="of this mirror, unique at the target; letters, digits, - and _")
    add(
        "--source",
        required=True,
        metavar="URLS",
        help="grpc://host:8815, of a cluster those of its nodes, by commas",
    )
    add(
        "--target",
        required=True,
        metavar="URLS",
        help="mqtt://host:1883, of a cluster those of its nodes, by commas",
    )
    add(
        "--source-site",
        required=True,
        metavar="NAME",
        help="tagged on each message, as user property rumq-via",
    )
    add("--target-site", required=True, metavar="NAME", help="messages that have come through it are left out")
    add(
        "--positions",
        required=True,
        metavar="DIR",
        type=Path,
        help="where the mirror stands in each partition",
    )
    add("--once", action="store_true", help="exactly once: QoS 2 and a retained position at the target")
    add("--stream", default="main", help="of the source [main]")
    add("--subscribe", default="", metavar="FILTERS", help="topic filters, with commas [all]")
    add("--prefix", default="", help="before each topic at the target")
    add(
        "--first",
        choices=("earliest", "latest"),
        default="earliest",
        help="where it begins at its first start",
    )
    add("--username", help="at the target, with --password-file")
    add("--password-file", metavar="FILE")
    add("--tls-ca", metavar="FILE", help="authorities of the target's certificate, for mqtts://")
    add("--source-username", help="at the source, with --source-password-file")
    add("--source-password-file", metavar="FILE")
    add("--source-tls-ca", metavar="FILE", help="authorities of the source's certificate, for grpc+tls://")
    add("--events-format", default="auto", help=argparse.SUPPRESS)
    add("--events-level", default="info", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """raises: RumqError"""
    from rumq.events.event_log import tell
    from rumq.events.output import setup_events

    try:
        from rumq.mirror.mirror import Mirror
        from rumq.mirror.partition_mirror import MirrorRules
        from rumq.sink.sink_options import parse_sink_options
        from rumq.table.broker_options import maybe_flight_location
        from rumq.table.options import filters
    except ImportError:
        raise RumqError("a mirror needs pyarrow and numpy: pip install 'rumq[flight]'") from None
    setup_events(args.events_format, args.events_level)
    if not args.name.replace("-", "").replace("_", "").isalnum() or not args.name.isascii():
        raise RumqError(f"--name {args.name}: expected letters, digits, - and _")
    if args.source_site == args.target_site:
        raise RumqError(f"--source-site and --target-site are both {args.source_site}: nothing would be mirrored")
    said = {"username": args.username, "passwordFile": args.password_file, "tlsCa": args.tls_ca}
    known = {name: value for name, value in said.items() if value}
    targets = tuple(parse_sink_options({"broker": each.strip(), **known}) for each in args.target.split(","))
    said = {
        "broker": args.source, "username": args.source_username, "passwordfile": args.source_password_file,
        "tlsca": args.source_tls_ca, "fetchoffset.numretries": "0",
    }  # fmt: skip
    location = maybe_flight_location({name: value for name, value in said.items() if value})
    assert location is not None
    rules = MirrorRules(
        args.name, args.source_site, args.target_site, targets, filters(args.subscribe), args.prefix, args.once,
        first=args.first,
    )  # fmt: skip
    args.positions.mkdir(mode=0o700, parents=True, exist_ok=True)
    stopping = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping)  # before gRPC has threads
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    mirror = Mirror(rules, location, args.positions, tell, stream=args.stream)
    threading.Thread(target=mirror.run, name="rumq-mirror", daemon=True).start()
    signal.sigwait(stopping)
    os._exit(0)  # a batch that was begun is repeated
