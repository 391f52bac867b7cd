"""Requests as bytes to messages, and pages: what a caller sends wrong is said to it."""

from __future__ import annotations

from typing import Protocol, TypeVar

from google.protobuf.message import DecodeError

from rumq.admin.requests import ROWS_MAX, ROWS_USUAL
from rumq.services.contract.faults import CallFault

PAGE_ROWS_MAX = 1000


class Parsed(Protocol):
    def ParseFromString(self, serialized: bytes) -> int: ...


Request = TypeVar("Request", bound=Parsed)


def parsed(kind: type[Request], data: bytes) -> Request:
    """raises: CallFault"""
    made = kind()
    try:
        made.ParseFromString(data)
    except (DecodeError, RecursionError):
        raise CallFault(
            "ARGUMENT_INVALID", f"{len(data)} bytes were sent that are no {kind.__name__} of rumq.v1"
        ) from None
    return made


def page_rows(size: int) -> int:
    """Rows at most. raises: CallFault"""
    if size > PAGE_ROWS_MAX:
        raise CallFault("ARGUMENT_INVALID", f"page_size = {size}: {PAGE_ROWS_MAX} at most", limit=PAGE_ROWS_MAX)
    return size or ROWS_USUAL


def page_of(size: int, token: str) -> tuple[int, int]:
    """Rows at most, and rows to skip. raises: CallFault"""
    rows = page_rows(size)
    if token and not (token.isascii() and token.isdigit() and len(token) < 9):
        raise CallFault("CURSOR_INVALID", "the page_token is none that an answer has given")
    skipped = int(token or 0)
    if skipped >= ROWS_MAX:
        raise CallFault("CURSOR_INVALID", f"pages end at {ROWS_MAX} rows: narrow what is asked for", limit=ROWS_MAX)
    return min(rows, ROWS_MAX - skipped), skipped


def next_page(skipped: int, rows: int, left_out: int) -> str:
    """The token of the page behind so many rows; empty: there is none."""
    following = skipped + rows
    return str(following) if rows and left_out > skipped and following < ROWS_MAX else ""
