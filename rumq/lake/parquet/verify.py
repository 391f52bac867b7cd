"""Compares every file of a lake with its manifest, and optionally with the log. docs/guides/lake.md, "Verify".

Reads only. The digests are computed again from the records of the log, as far back as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import pyarrow as pa

from commitlog import Gap
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView
from rumq.lake.file_names import GAPS, gap_path, maybe_named
from rumq.lake.folder import Folder
from rumq.lake.manifest import NAME, LakeFile, LakeManifest, LakePartition, Lost
from rumq.lake.parquet.export import pieces
from rumq.lake.parquet.file_check import Content, examined

Severity = Literal["error", "warning"]


class ExportFinding(NamedTuple):
    """error: a record is lost, duplicated or different; warning: an extra file."""

    severity: Severity
    partition: str
    where: str
    what: str


def verify(folder: Folder, log: LogReader | None = None) -> Iterator[ExportFinding]:
    """Yield all findings. raises: OSError"""
    manifest = LakeManifest(folder)
    for line in manifest.bad_lines:
        yield ExportFinding("error", "", NAME, f"line {line} does not match its checksum")
    views = {view.name: view for view in log.partitions()} if log is not None else {}
    for partition in manifest.partitions.values():
        for what in (*partition.breaks, *holes(partition)):
            yield ExportFinding("error", partition.name, NAME, what)
        view = views.get(partition.name)
        for file in sorted(partition.files.values(), key=lambda f: f.base_lsn):
            for what in file_faults(folder, file):
                yield ExportFinding("error", partition.name, file.path, what)
            if view is not None and file.base_lsn >= view.first_lsn:
                for what in log_faults(view, file, partition.gaps):
                    yield ExportFinding("error", partition.name, file.path, what)
        for gap in partition.gaps:
            path = gap_path(partition.name, gap.base_lsn, gap.next_lsn)
            if folder.size(path) < 0:
                yield ExportFinding("error", partition.name, path, "the row of a gap is missing")
    held = {file.path for file in manifest.files()} | manifest.shadowed()
    held |= {path for partition in manifest.partitions.values() for path in partition.kept}
    for path in folder.names(""):
        named = maybe_named(path)
        if named is not None and not path.startswith(f"{GAPS}/") and path not in held:
            yield ExportFinding(
                "warning", named.partition, path, "no line of the manifest has it: the next export removes it if it is "
                "of no use",
            )  # fmt: skip


def holes(partition: LakePartition) -> Iterator[str]:
    """Records that no file has, or two, by the manifest alone."""
    reached = partition.first_lsn
    spans = [(f.base_lsn, f.next_lsn, f.path) for f in partition.files.values()]
    spans += [(gap.base_lsn, gap.next_lsn, "") for gap in partition.gaps]
    for base, following, path in sorted(spans):
        if base > reached:
            yield f"records {reached} to {base - 1} are in no file"
        elif base < reached and path:
            yield f"records {base} to {min(reached, following) - 1} are in two files, one of them {path}"
        reached = max(reached, following)
    if reached < partition.next_lsn:
        yield f"records {reached} to {partition.next_lsn - 1} are in no file"
    for file in partition.files.values():
        if file.rows != file.next_lsn - file.base_lsn - lost_within(partition.gaps, file):
            yield f"{file.path} has {file.rows} rows for the records {file.base_lsn} to {file.next_lsn - 1}"


def lost_within(gaps: list[Lost], file: LakeFile) -> int:
    return sum(max(0, min(g.next_lsn, file.next_lsn) - max(g.base_lsn, file.base_lsn)) for g in gaps)


def file_faults(folder: Folder, file: LakeFile) -> Iterator[str]:
    """Compare a file with its line of the manifest."""
    if folder.size(file.path) < 0:
        yield "it is missing"
        return
    try:
        found = examined(folder.read(file.path))
    except (pa.ArrowException, OSError) as fault:
        yield f"it cannot be read as Parquet: {str(fault).splitlines()[0]}"
        return
    if (found.bytes, found.crc) != (file.bytes, file.crc):
        yield f"its {found.bytes} bytes have the CRC {found.crc:08x}; {file.bytes} with {file.crc:08x} were written"
    if (found.base_lsn, found.next_lsn) != (file.base_lsn, file.next_lsn):
        yield f"its records are {found.base_lsn} to {found.next_lsn - 1}, not {file.base_lsn} to {file.next_lsn - 1}"
    if found.repeated:
        yield f"{found.repeated} of its records are in it twice"
    if file.first_ts >= 0 and found.bounds != (
        file.first_ts,
        file.last_ts,
        file.first_topic,
        file.last_topic,
    ):
        yield f"its records are within {found.bounds}, and the manifest has others: queries would pass it over"
    yield from content_faults(found.content, file, "the manifest")


def log_faults(view: PartitionView, file: LakeFile, gaps: list[Lost]) -> Iterator[str]:
    """Compare a file's line of the manifest with the records of the log."""
    rows = lsn = payload = 0
    for piece in pieces(view, file.base_lsn, file.next_lsn):
        if isinstance(piece, Gap):
            known = any(g.base_lsn <= piece.base_lsn and piece.next_lsn <= g.next_lsn for g in gaps)
            if not known:
                return  # damaged or removed since: the lake has records that the log lacks
            continue
        rows += len(piece)
        lsn += piece.lsn_digest()
        payload += piece.payload_digest()
    yield from content_faults(Content(rows, lsn % 2**64, payload % 2**64), file, "the file", "the log")


def content_faults(found: Content, file: LakeFile, says: str, source: str = "") -> Iterator[str]:
    where = f"in {source} " if source else ""
    if found.rows != file.rows:
        yield f"{where}there are {found.rows} records, and {says} has {file.rows}"
    if found.lsn != file.lsn:
        yield f"{where}the lsns differ from those of {says}"
    if found.payload != file.payload:
        yield f"{where}the payloads differ from those of {says}"
