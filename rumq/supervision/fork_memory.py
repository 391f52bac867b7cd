"""What a process does before it forks, so that its children go on sharing its memory."""

from __future__ import annotations

import gc


def share_memory() -> None:
    """Freeze all objects: a collection in a child looks at its own alone.

    A collection writes to the header of each object that it looks at, so the first one in a child would copy nearly
    every page of what was imported before. Source: the documentation of gc.freeze"""
    gc.collect()
    gc.freeze()
