"""Output of `rumqd log`: segments, records, verdicts. Reads with `commitlog.read.log_reader`, decodes with the codec.

Refuses to know how the files are laid out."""

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from commitlog import Chunk, Gap, RealFiles
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView
from commitlog.read.verify import Finding, verify
from commitlog.row_layout import ROW_RETAIN, ROW_V5
from rumq.cli.data.counted_files import CountedFiles, segment_bytes
from rumq.cli.message_format import Shown, formatter
from rumq.errors import ConfigError, DataDirectoryError, Fault
from rumq.mqtt.decode import decode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Publish
from rumq.mqtt.topics import matches
from rumq.session.protocol.replay_syntax import BadStart, parse_start
from rumq.terminal.progress import Progress


def open_log(data: str) -> LogReader:
    """raises: DataDirectoryError"""
    try:
        return LogReader(RealFiles(), data)
    except FileNotFoundError:
        raise DataDirectoryError(data, "no data directory of rumq: name one with --data") from None


def as_time(ts_us: int) -> str:
    return datetime.fromtimestamp(ts_us / 1_000_000, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def print_segments(data: str, *, as_json: bool) -> int:
    rows: list[dict[str, Any]] = []
    for view in open_log(data).partitions():
        for segment in view.segments():
            rows.append(
                {
                    "partition": view.name,
                    "base_lsn": segment.base_lsn,
                    "end_lsn": segment.end_lsn,
                    "records": segment.end_lsn - segment.base_lsn,
                    "bytes": segment.bytes,
                    "first": as_time(segment.first_ts) if segment.places else None,
                    "last": as_time(segment.last_ts) if segment.places else None,
                    "state": "sealed" if segment.sealed else "open",
                }
            )
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return 0
    columns = ("partition", "base_lsn", "end_lsn", "records", "bytes", "state", "first", "last")
    table = [columns, *([str("-" if row[c] is None else row[c]) for c in columns] for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    for line in table:
        cells = (
            cell.rjust(w) if 0 < i < 5 else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(cells).rstrip())
    print(f"{sum(row['records'] for row in rows):,} records, {sum(row['bytes'] for row in rows):,} bytes")
    return 0


def print_records(
    data: str, topic_filter: str, start: str, stream: str | None, count: int | None, template: str
) -> int:
    """Each partition in its order; prints a gap on standard error and returns status 1."""
    line = formatter(template)
    status, left = 0, count
    out = sys.stdout.buffer
    for view in open_log(data).partitions():
        if stream not in (None, view.stream):
            continue
        for found in view.chunks(first_lsn(view, topic_filter, start), view.end_lsn):
            if isinstance(found, Gap):
                print(
                    f"rumqd log: {view.name}: records {found.base_lsn} to {found.next_lsn - 1}: {found.why}",
                    file=sys.stderr,
                )
                status = 1
                continue
            for shown in records(view, found, topic_filter):
                out.write(line(shown) + b"\n")
                if left is not None and (left := left - 1) == 0:
                    out.flush()
                    return status
    out.flush()
    return status


def first_lsn(view: PartitionView, topic_filter: str, start: str) -> int:
    try:
        place = parse_start(start, topic_filter, time.time_ns() // 1000)
    except BadStart as fault:
        raise ConfigError(Fault("--from", start, "", str(fault))) from None
    if isinstance(place, tuple):
        kind, value = place
        return view.find_time(value) if kind == "time" else view.find_offset(topic_filter.encode(), value)
    return view.end_lsn if place == "latest" else view.first_lsn


def records(view: PartitionView, chunk: Chunk, topic_filter: str) -> Iterator[Shown]:
    """The records of a chunk whose topics the filter matches."""
    topics = view.names()[0]
    words = memoryview(chunk.rows).cast("I")
    for row in range(chunk.count):
        at = row * 8
        topic = topics.get(words[at], b"").decode()
        if topic_filter != "#" and not matches(topic_filter, topic):
            continue
        start = words[at + 1]
        end = words[at + 9] if row + 1 < chunk.count else len(chunk.frames)
        flags = words[at + 7] & 0xFFFF
        frame = bytes(memoryview(chunk.frames)[start:end])
        head = frame_at(frame, 0, len(frame))
        assert head is not None
        packet = decode(frame[0], frame[head[0] :], 5 if flags & ROW_V5 else 4)
        assert isinstance(packet, Publish)
        yield Shown(
            topic=topic,
            payload=packet.payload,
            qos=flags & 3,
            retain=bool(flags & ROW_RETAIN),
            time=as_time(chunk.base_ts + words[at + 4]),
            offset=words[at + 2] | words[at + 3] << 32,
            lsn=chunk.base_lsn + row,
            partition=view.name,
            properties=packet.properties,
        )


def print_verdicts(data: str, *, as_json: bool, progress: bool | None = None) -> int:
    """Every finding; status 1 when anything is damaged. progress: whether there is a bar, None: on a terminal"""
    open_log(data)
    with Progress("verify", segment_bytes(data), "bytes", is_on=progress) as bar:
        damaged = print_findings(verify(CountedFiles(bar.advance), data), bar, as_json=as_json)
    if not as_json:
        print("damaged, see above" if damaged else "sound: every checksum of every record matches")
    return 1 if damaged else 0


def print_findings(findings: Iterator[Finding], bar: Progress, *, as_json: bool) -> int:
    """Returns how many of them are damage."""
    damaged = 0
    for finding in findings:
        damaged += finding.severity == "error"
        bar.clear()
        if as_json:
            print(json.dumps(finding._asdict()))
        else:
            lost = (
                f", records {finding.base_lsn} to {finding.next_lsn - 1}" if finding.next_lsn > finding.base_lsn else ""
            )
            print(f"{finding.severity}: {finding.partition}: {finding.where}: {finding.what}{lost}")
    return damaged
