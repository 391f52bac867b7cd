"""What a missing partition contained, as a sentence for the operator."""

from __future__ import annotations

STATE_STREAM = "_state"


def lost_content(name: str) -> str:
    """name: of a partition, such as main/g1/p0"""
    stream = name.partition("/")[0]
    if stream == STATE_STREAM:
        return (
            "it contained persistent sessions and their cursors, which are lost; retained messages are restored from "
            "the log, as far back as it reaches"
        )
    return f"it contained records of stream {stream}, which are lost"
