"""Up to where a partition's records are exported, and where to: a note that an exporter leaves beside its segments.

docs/reference/log-format.md, "EXPORTED". Retention may wait for it; the log itself never reads it."""

from __future__ import annotations

from commitlog.checksum import crc32
from commitlog.disk.files import Files, replace_file, whole_file

NAME = "EXPORTED"


def write_exported(files: Files, directory: str, next_lsn: int, place: str = "") -> None:
    """Every record below next_lsn is somewhere else, and safe there. place: where that is. raises: OSError"""
    text = b"%d" % next_lsn + (b" " + place.encode() if place else b"")
    replace_file(files, f"{directory}/{NAME}", b"%08x %s\n" % (crc32(text), text))


def exported_lsn(files: Files, directory: str) -> int:
    """0: nothing is, or the note is damaged. raises: OSError"""
    return _note(files, directory)[0]


def exported_to(files: Files, directory: str) -> str:
    """The folder or URI of the lake; "": there is none that is known. raises: OSError"""
    return _note(files, directory)[1]


def _note(files: Files, directory: str) -> tuple[int, str]:
    path = f"{directory}/{NAME}"
    if not files.exists(path):
        return 0, ""
    crc, _, text = whole_file(files, path).removesuffix(b"\n").partition(b" ")
    number, _, place = text.partition(b" ")
    if crc != b"%08x" % crc32(text) or not number.isdigit():
        return 0, ""
    return int(number), place.decode()
