"""Read what a leader sends of its segments: their headers, and whole chunks in blocks.

docs/reference/log-format.md, "Chunk".
Chunk headers are checked, as they give the lengths; bodies are checked by the follower, before it writes them."""

from __future__ import annotations

from errno import ENOENT

from commitlog.checksum import crc32
from commitlog.chunk import HEADER_BYTES, MAGIC
from commitlog.disk.files import Files, whole_file
from commitlog.errors import Damaged
from commitlog.format.segment import SEGMENT_HEADER_BYTES, salt_now
from commitlog.index.dictionary import SNAPSHOT


def read_opening(files: Files, path: str, salt: int = 0) -> bytes:
    """The 4,096 bytes before a segment's chunks. salt: of the file that is meant, 0: whichever is there

    raises: OSError; FileNotFoundError when retention removed it, or a packed one is in its place"""
    handle = files.open(path)
    try:
        require_file(files, handle, path, salt)
        return files.read(handle, 0, SEGMENT_HEADER_BYTES)
    finally:
        files.close(handle)


def has_saved_names(files: Files, directory: str) -> bool:
    """A copy that was just emptied has none before its leader has sent them."""
    return files.exists(f"{directory}/{SNAPSHOT}")


def saved_names(files: Files, directory: str) -> bytes:
    """The topics and publishers that retention saved before it removed anything. raises: OSError"""
    return whole_file(files, f"{directory}/{SNAPSHOT}")


def require_file(files: Files, handle: int, path: str, salt: int) -> None:
    """raises: OSError; FileNotFoundError where another file than that with this salt is open. salt: 0: any may be"""
    if salt and salt_now(files, handle, path, salt) != salt:
        raise FileNotFoundError(ENOENT, "it was packed: its bytes are other ones now", path)


def read_block(files: Files, path: str, position: int, stop: int, bytes_max: int, salt: int = 0) -> tuple[bytes, int]:
    """Whole chunks of a segment from a byte on, and the position behind them; at least one, however long it is.

    stop: where the valid part of the segment ends; b"" there. position: of a chunk, 4,096 for the first
    salt: of the file whose bytes these are, 0: whichever is there
    raises: OSError; FileNotFoundError when retention removed it, or a packed one is in its place; Damaged where no
    chunk begins"""
    if position >= stop:
        return b"", position
    handle = files.open(path)
    try:
        require_file(files, handle, path, salt)
        wanted = min(stop - position, bytes_max)
        data = files.read(handle, position, wanted)
        if len(data) == stop - position:
            return data, stop
        size = whole_chunks(data, path, position)
        if not size:
            size = chunk_bytes(data if len(data) >= HEADER_BYTES else files.read(handle, position, HEADER_BYTES), 0)
            if not size or position + size > stop:
                raise Damaged(f"{path} at {position}", "no whole chunk begins here")
            data = files.read(handle, position, size)
            if len(data) < size:
                raise Damaged(f"{path} at {position}", "the file ends inside a chunk")
        return data[:size], position + size
    finally:
        files.close(handle)


def whole_chunks(data: bytes, path: str, position: int) -> int:
    """How many bytes of a block are whole chunks."""
    at = 0
    while at + HEADER_BYTES <= len(data):
        size = chunk_bytes(data, at)
        if not size:
            raise Damaged(f"{path} at {position + at}", "the chunk's header is damaged")
        if at + size > len(data):
            break
        at += size
    return at


def chunk_bytes(data: bytes, at: int) -> int:
    """The length of the chunk whose header begins there; 0 if none does."""
    if len(data) < at + HEADER_BYTES or int.from_bytes(data[at : at + 4], "little") != MAGIC:
        return 0
    if crc32(data[at : at + 124]) != int.from_bytes(data[at + 124 : at + 128], "little"):
        return 0
    return int.from_bytes(data[at + 36 : at + 40], "little")
