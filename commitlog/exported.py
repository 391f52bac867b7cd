"""Up to where a partition's records are exported: a note that an exporter leaves beside its segments.

docs/log-format.md, "EXPORTED". Retention may wait for it; the log itself never looks at it."""

from __future__ import annotations

from zlib import crc32

from commitlog.files import Files, replace_file, whole_file

NAME = "EXPORTED"


def write_exported(files: Files, directory: str, next_lsn: int) -> None:
    """Every record below next_lsn is somewhere else, and safe there. raises: OSError"""
    text = b"%d" % next_lsn
    replace_file(files, f"{directory}/{NAME}", b"%08x %s\n" % (crc32(text), text))


def exported_lsn(files: Files, directory: str) -> int:
    """0: nothing is, or the note is damaged. raises: OSError"""
    path = f"{directory}/{NAME}"
    if not files.exists(path):
        return 0
    crc, _, text = whole_file(files, path).rstrip(b"\n").partition(b" ")
    return int(text) if text.isdigit() and crc == b"%08x" % crc32(text) else 0
