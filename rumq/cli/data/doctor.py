"""`rumqd doctor`: faults of a data directory, each with a remedy, as text.

Reads only. Refuses to know how the files are laid out."""

import argparse
import json
import os
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rumq.cli import access_denied
from rumq.process.wiring.exposure import exposed
from rumq.process.wiring.missing_partition import STATE_STREAM, lost_content
from rumq.terminal.progress import Progress, add_progress_flag

ABOUT = """\
Check a data directory and this machine: permissions, lock, free space, checksums of all records, clock, limits. It
changes nothing.
"""
EXAMPLES = """\
examples:
  rumqd doctor --data /var/lib/rumq
  rumqd doctor --quick                           without reading every record

exit status: 0 nothing is wrong; 1 it found a fault
"""
FREE_BYTES_MIN = 1 << 30
DESCRIPTORS_MIN = 4096
CLOCK_SECONDS_MAX = 60.0
LEFT_OVER = (".new",)
OF_A_SEGMENT = (
    "every record is as it was, but no program changed these bytes: the disk did. Make a backup elsewhere "
    "(rumqd backup) and check the disk (smartctl -a); these bytes have no meaning and stay as they are"
)


class Complaint(NamedTuple):
    """wrong: the fault; do: the remedy; serious: it counts for the exit status."""

    wrong: str
    do: str
    serious: bool = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-d", "--data", metavar="DIR", default="rumq-data", help="[rumq-data]")
    add_progress_flag(parser)
    parser.add_argument("--quick", action="store_true", help="do not read every record")
    parser.add_argument("--json", action="store_true", help="one JSON object a complaint")


def run(args: argparse.Namespace) -> int:
    from rumq.cli.data.counted_files import segment_bytes

    serious = 0
    data = args.data.rstrip("/")
    total = 0 if args.quick else segment_bytes(data)
    with Progress("doctor", total, "bytes", is_on=args.progress) as bar:
        for complaint in examined(data, quick=args.quick, now=time.time(), advance=bar.advance):
            serious += complaint.serious
            bar.clear()
            if args.json:
                print(json.dumps(complaint._asdict()), flush=True)
            else:
                kind = "wrong" if complaint.serious else "note"
                print(f"{kind}: {complaint.wrong}\n   do: {complaint.do}", flush=True)
    if not args.json and not serious:
        print("nothing is wrong" if not args.quick else "nothing is wrong (records were not checked)")
    return 1 if serious else 0


def nobody_watches(_: int) -> None: ...


def examined(
    data: str, *, quick: bool, now: float, advance: Callable[[int], None] = nobody_watches
) -> Iterator[Complaint]:
    """As `examine`; a file that this user may not read is a fault, too."""
    try:
        yield from examine(data, quick=quick, now=now, advance=advance)
    except PermissionError as fault:
        yield Complaint(
            f"{fault.filename} cannot be examined",
            f"stop here: {access_denied.sentence(fault)}",
        )


def examine(
    data: str, *, quick: bool, now: float, advance: Callable[[int], None] = nobody_watches
) -> Iterator[Complaint]:
    """now: seconds since 1970; advance: told of bytes of the log that were read"""
    yield from of_this_machine()
    if not os.path.isdir(data):
        yield Complaint(f"{data} is not there, or no directory", "name the data directory with --data")
        return
    found = of_the_directory(data)
    yield from found
    if any(c.serious for c in found if c.do.startswith("stop here")):
        return
    from commitlog import RealFiles
    from commitlog.read.inventory import missing_partitions
    from commitlog.read.log_reader import LogReader

    try:
        views = LogReader(RealFiles(), data).partitions(internal=True)
    except FileNotFoundError:
        if os.listdir(data):
            yield Complaint(
                f"{data} has files, but no FORMAT: it is no data directory of rumq, or its creation was interrupted",
                "check its content; if nothing is needed, remove it and start rumqd",
            )
        return
    for name in missing_partitions(RealFiles(), data, STATE_STREAM):
        yield Complaint(
            f"{data}/{name} is missing: {lost_content(name)}",
            "restore it from a backup (rumqd restore); a start continues without it, and reports that once",
        )
    newest = 0
    for view in views:
        for unreadable in view.unreadable:
            yield Complaint(
                f"{view.name}: {unreadable}",
                "restore the file from a backup (rumqd restore), or leave it: readers get the range as a gap",
            )
        for segment in view.segments():
            if segment.bytes < segment.logical_end:
                yield Complaint(
                    f"{view.name}: {segment.path} has {segment.bytes} bytes, and was sealed with "
                    f"{segment.logical_end}: the rest is lost, with records up to {segment.end_lsn - 1}",
                    "restore the file from a backup (rumqd restore); all other records are readable",
                )
            newest = max(newest, segment.last_ts if segment.places else 0)
    if newest / 1e6 > now + CLOCK_SECONDS_MAX:
        yield Complaint(
            f"the newest record is {newest / 1e6 - now:,.0f} s in the future: this machine's clock is behind, "
            "or was ahead when it was written",
            "set the clock; until then new records carry that time, and retention by age waits",
        )
    if not quick:
        yield from of_the_records(data, advance)


def of_this_machine() -> Iterator[Complaint]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS_MIN:
        yield Complaint(
            f"a process may open {hard} files here, and every client is one",
            "raise the hard limit: LimitNOFILE= in the systemd unit, or nofile in /etc/security/limits.conf",
            serious=False,
        )


def of_the_directory(data: str) -> list[Complaint]:
    found = []
    if not os.access(data, os.W_OK | os.X_OK):
        found.append(Complaint(f"{data} may not be written by this user", "change its owner, or run as its owner"))
    if os.path.exists(f"{data}/FORMAT"):
        with open(f"{data}/FORMAT", "rb") as file:
            said = file.read(64).decode(errors="replace").strip()
        from commitlog.log.store import FORMAT

        if said != FORMAT:
            found.append(
                Complaint(
                    f"its format is {said!r}, this version reads {FORMAT!r}",
                    "stop here: use the rumq that wrote it",
                )
            )
    if problem := exposed(data):
        found.append(Complaint(problem, f"chmod -R o= {data}"))
    holder = holder_of(data)
    if holder:
        found.append(Complaint(f"a broker holds it ({holder})", "nothing, if it is meant to run", serious=False))
    free = shutil.disk_usage(data).free
    if free < FREE_BYTES_MIN:
        found.append(
            Complaint(
                f"{free / 2**20:,.0f} MiB are free on its disk",
                "make room, or set log.retention_bytes_max so that the log fits the disk",
            )
        )
    for folder, _, names in os.walk(data):
        for name in names:
            if name.endswith(LEFT_OVER):
                found.append(
                    Complaint(
                        f"{folder}/{name} is left over from an interrupted write",
                        "nothing: it is ignored, and replaced at the next write",
                        serious=False,
                    )
                )
    return found


def holder_of(data: str) -> str:
    """The holder of the lock, or an empty text."""
    import fcntl

    try:
        handle = os.open(f"{data}/LOCK", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.read(handle, 64).decode(errors="replace").strip() or "unknown process"
    finally:
        os.close(handle)
    return ""


def of_the_records(data: str, advance: Callable[[int], None]) -> Iterator[Complaint]:
    from commitlog.read.verify import verify
    from rumq.cli.data.counted_files import CountedFiles

    ways = {
        "error": "these records are lost; all others are readable. Restore them from a backup if there is one, "
        "and check the disk (smartctl -a): one flipped bit is seldom the last",
        "warning": "nothing: the broker rebuilds it from the segments",
        "note": "nothing: a kill or a power loss leaves such a tail, which was never acknowledged",
    }
    for finding in verify(CountedFiles(advance), data):
        lost = ""
        if finding.next_lsn > finding.base_lsn:
            lost = f" (records {finding.base_lsn} to {finding.next_lsn - 1})"
        yield Complaint(
            f"{finding.partition}: {finding.where}: {finding.what}{lost}",
            OF_A_SEGMENT if finding.severity == "warning" and ".seg" in finding.where else ways[finding.severity],
            serious=finding.severity == "error",
        )
