"""The body of a request, as far as the limit."""

from __future__ import annotations

from starlette.requests import Request


class TooLarge(Exception):
    """413: the body has more bytes than the limit."""


async def body_of(request: Request, bytes_max: int) -> bytes:
    """raises: TooLarge, before the rest is read; starlette.requests.ClientDisconnect"""
    said = request.headers.get("content-length", "")
    if said.isdigit() and int(said) > bytes_max:
        raise TooLarge(f"the body has {said} bytes; at most {bytes_max} are taken")
    got = bytearray()
    async for piece in request.stream():
        got += piece
        if len(got) > bytes_max:
            raise TooLarge(f"the body has more than {bytes_max} bytes")
    return bytes(got)
