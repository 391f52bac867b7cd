"""`rumqd lake export`: the process that exports, at low priority, until it is stopped.

Refuses to know what a file of the lake looks like."""

from __future__ import annotations

import argparse
import os
import signal
import time
from typing import Any

from commitlog import RealFiles
from commitlog.log_reader import numbered
from rumq.errors import DataDirectoryError, RumqError
from rumq.events import setup_events
from rumq.shards.stats.event_log import tell

NICE = 10
POLL_SECONDS = 1.0
MERGE_SECONDS = 7200  # a segment may stay open for an hour, and then it must be exported
RETRY_SECONDS = (1.0, 5.0, 30.0, 60.0)


class Stopped(BaseException):
    """SIGTERM. What was being written is written again at the next start."""


def export(args: argparse.Namespace) -> int:
    """raises: RumqError, DataDirectoryError"""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise RumqError("Parquet needs pyarrow and numpy: pip install pyarrow numpy") from None
    setup_events(args.events_format, args.events_level)
    os.nice(NICE)
    if not RealFiles().exists(f"{args.data}/FORMAT"):
        raise DataDirectoryError(args.data, "no data directory of rumq: name one with --data")
    if args.once:
        exporting = exporter(args)
        done = exporting.run()
        exporting.merge(hour_to_merge(), now_s=int(time.time()), keep_s=args.keep)
        print(
            f"{done.rows:,} records of {done.segments} segments exported to {done.files} files: {done.log_bytes:,} "
            f"bytes of log are {done.bytes:,} of Parquet; {done.gaps} gaps"
        )
        return 0
    signal.signal(signal.SIGTERM, stop)
    if args.for_broker:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the broker too, which ends us
    try:
        go_on(args)
    except Stopped:
        pass
    return 0


def stop(*_: Any) -> None:
    raise Stopped


def exporter(args: argparse.Namespace) -> Any:
    from rumq.lake.export import Exporter
    from rumq.lake.folder import folder_at

    return Exporter(
        RealFiles(), args.data, folder_at(args.to), streams=args.stream, marks=args.for_broker, event=tell
    )


def go_on(args: argparse.Namespace) -> None:
    """Export whatever is finished, again and again; what cannot be done is told and tried again."""
    parent = os.getppid()
    exporting: Any = None
    seen: Any = None
    failed = 0
    merged = 0
    while not args.for_broker or os.getppid() == parent:
        found, hour = segments_there(args.data), hour_to_merge()
        if found != seen or hour != merged:
            try:
                exporting = exporting or exporter(args)
                exporting.run()
                seen, failed = found, 0
                if hour != merged:
                    merged = hour  # what cannot be merged is tried again with the next hour
                    exporting.merge(hour, now_s=int(time.time()), keep_s=args.keep)
            except (OSError, RumqError) as fault:
                wait = RETRY_SECONDS[min(failed, len(RETRY_SECONDS) - 1)]
                failed += 1
                tell("lake.failed", why=str(fault), retry_seconds=wait)
                # What came of the last step is not known: the manifest says it.
                if exporting is not None:
                    exporting.close()
                    exporting = None
                time.sleep(wait)
                continue
        time.sleep(POLL_SECONDS)


def hour_to_merge() -> int:
    """Hours before this one, since 1970, have long been over: whoever reads them now may be told of other files."""
    return int(time.time() - MERGE_SECONDS) // 3600


def segments_there(data: str) -> list[tuple[str, int]]:
    """What changes when a segment is finished: the manifest of its partition."""
    files = RealFiles()
    found = []
    for stream in files.names(data):
        for generation in numbered(names(files, f"{data}/{stream}"), "g"):
            above = f"{data}/{stream}/g{generation}"
            for number in numbered(names(files, above), "p"):
                path = f"{above}/p{number}/MANIFEST"
                try:
                    found.append((path, files.size(path)))
                except OSError:
                    pass  # not there yet
    return found


def names(files: RealFiles, path: str) -> list[str]:
    try:
        return files.names(path)
    except OSError:
        return []
