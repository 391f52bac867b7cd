"""Bytes of a terminal as keys."""

from __future__ import annotations

from collections.abc import Iterator

SEQUENCES = {
    "[A": "up", "[B": "down", "[C": "right", "[D": "left", "OA": "up", "OB": "down", "OC": "right", "OD": "left",
    "[5~": "page-up", "[6~": "page-down", "[H": "home", "OH": "home", "[1~": "home", "[F": "end", "[4~": "end",
    "[Z": "back-tab",
}  # fmt: skip
PLAIN = {
    "\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\x08": "backspace", "\x03": "ctrl-c",
    "\x04": "ctrl-d", "\x15": "ctrl-u", "\x1b": "esc",
}  # fmt: skip


def keys_of(data: bytes) -> Iterator[str]:
    """Each key of what was read at once; sequences that are not known are skipped."""
    text = data.decode(errors="ignore")
    at = 0
    while at < len(text):
        if text[at] == "\x1b" and at + 1 < len(text) and text[at + 1] in "[O":
            end = at + 2
            while end < len(text) and not ("@" <= text[end] <= "~"):
                end += 1
            if (key := SEQUENCES.get(text[at + 1 : end + 1])) is not None:
                yield key
            at = end + 1
            continue
        yield PLAIN.get(text[at], text[at])
        at += 1
