"""What a partition that is not there held, in words. Knows no file."""

from __future__ import annotations

STATE_STREAM = "_state"


def what_went(name: str) -> str:
    """name: of a partition, such as main/g1/p0"""
    stream = name.partition("/")[0]
    if stream == STATE_STREAM:
        return (
            "it held lasting sessions and their places, which are gone; retained messages are found again in the log, "
            "as far as it goes back"
        )
    return f"it held records of stream {stream}, which are gone"
