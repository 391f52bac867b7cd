"""Recover topic names from frames if the chunks with their aux entries are lost.

Two chunks of every segment that uses a topic name it, and a frame is a whole PUBLISH. docs/reference/log-format.md,
"Aux"."""

from __future__ import annotations

from collections.abc import Set

from commitlog.chunk import Gap
from commitlog.disk.files import Files
from commitlog.format.segment import ChunkPosition, read_chunk


def name_from_frames(
    files: Files,
    handle: int,
    path: str,
    salt: int,
    places: list[ChunkPosition],
    topics: Set[int],
    names: dict[int, bytes],
) -> None:
    """Add to `names` the names of `topics` that are missing: each frame has its topic."""
    nameless = topics - names.keys()
    for place in places if nameless else []:
        chunk = read_chunk(files, handle, path, salt, place)
        if isinstance(chunk, Gap):
            continue
        words = memoryview(chunk.rows).cast("I")
        for row in range(chunk.count):
            if words[8 * row] in nameless:
                names[words[8 * row]] = topic_of(memoryview(chunk.frames)[words[8 * row + 1] :])
                nameless.discard(words[8 * row])
        if not nameless:
            return


def topic_of(frame: memoryview) -> bytes:
    """The topic in a PUBLISH packet."""
    at = 1
    while at < len(frame) and frame[at] & 0x80:
        at += 1
    length = int.from_bytes(frame[at + 1 : at + 3], "big")
    return bytes(frame[at + 3 : at + 3 + length])
