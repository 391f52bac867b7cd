"""`rumqd lake export`: export sealed segments at low priority, once or until stopped."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from types import FrameType
from typing import TYPE_CHECKING

from commitlog import RealFiles
from commitlog.read.log_reader import numbered
from rumq.errors import DataDirectoryError, RumqError
from rumq.events.event_lines import RING
from rumq.events.event_log import tell
from rumq.events.event_sender import EventSender
from rumq.events.output import setup_events
from rumq.supervision.broker_parent import end_with_broker, is_orphan

if TYPE_CHECKING:
    from rumq.lake.parquet.export import Exporter

NICE = 10
POLL_SECONDS = 1.0
MERGE_SECONDS = 7200  # an hour's segments are sealed and exported by then
RETRY_SECONDS = (1.0, 5.0, 30.0, 60.0)


class Stopped(BaseException):
    """SIGTERM. An unfinished file is written again at the next start."""


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
        if args.json:
            print(json.dumps(done._asdict()))
            return 0
        print(
            f"{done.rows:,} records of {done.segments} segments exported to {done.files} files: {done.log_bytes:,} "
            f"bytes of log are {done.bytes:,} of Parquet; {done.gaps} gaps"
        )
        return 0
    signal.signal(signal.SIGTERM, stop)
    broker = None
    if args.for_broker:
        # A leader that was deposed is gone at once; what this one was writing is written again by the next.
        broker = end_with_broker()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the broker too, which stops us
    try:
        export_continuously(args, broker)
    except Stopped:
        pass
    return 0


def stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped


def exporter(args: argparse.Namespace) -> Exporter:
    from rumq.lake.folder import folder_at
    from rumq.lake.parquet.export import Exporter

    return Exporter(RealFiles(), args.data, folder_at(args.to), streams=args.stream, marks=args.for_broker, event=tell)


def export_continuously(args: argparse.Namespace, broker: int | None) -> None:
    """Export segments as they are sealed; a failure is reported (lake.failed) and retried."""
    exporting: Exporter | None = None
    seen: list[tuple[str, int]] | None = None
    failed = 0
    merged = 0
    sender = EventSender(RING, args.data, "lake")
    while broker is None or not is_orphan(broker):
        if args.for_broker:
            sender.flush()
        found, hour = segments_there(args.data), hour_to_merge()
        if found != seen or hour != merged:
            try:
                exporting = exporting or exporter(args)
                exporting.run()
                seen, failed = None if exporting.awaits_mark else found, 0
                if hour != merged:
                    merged = hour  # a failed merge is retried with the next hour
                    exporting.merge(hour, now_s=int(time.time()), keep_s=args.keep)
            except (OSError, RumqError) as fault:
                wait = RETRY_SECONDS[min(failed, len(RETRY_SECONDS) - 1)]
                failed += 1
                tell("lake.failed", why=str(fault), retry_seconds=wait)
                # The outcome of the last step is unknown: read the manifest again.
                if exporting is not None:
                    exporting.close()
                    exporting = None
                time.sleep(wait)
                continue
        time.sleep(POLL_SECONDS)


def hour_to_merge() -> int:
    """Files of hours before this one (since 1970) may be merged: readers have switched to later hours."""
    return int(time.time() - MERGE_SECONDS) // 3600


def segments_there(data: str) -> list[tuple[str, int]]:
    """(manifest path, size) of each partition; a manifest grows with every sealed segment."""
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
