"""The files of the web page, as they lie in `rumq/gateway/page`: no build step, no token, nothing from other hosts.

A file is read when it is asked for first, and again when it has changed. docs/reference/gateway.md, "The page"."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

DIRECTORY = Path(__file__).parent / "page"
INDEX, ICON = "index.html", "icon.svg"
PART = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_@.-]*")  # of a path: nothing that leads out of the directory
GZIP_BYTES_MIN = 512
TYPES = {
    ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8", ".json": "application/json", ".svg": "image/svg+xml",
    ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2", ".md": "text/plain; charset=utf-8",
}  # fmt: skip
COMPRESSED = (".png", ".ico", ".woff2")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self' ws: wss:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "cache-control": "no-cache", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "x-frame-options": "DENY", "content-security-policy": POLICY, "vary": "accept-encoding",
}  # fmt: skip


class PageFile(NamedTuple):
    """zipped: None where that would not be shorter; stamp: of the file when it was read"""

    stamp: tuple[int, int]
    kind: str
    tag: str
    plain: bytes
    zipped: bytes | None


class PageFiles:
    """directory: is not changed but by an update of the package"""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        self._directory = directory
        self._files: dict[Path, PageFile] = {}  # as many as the directory has at most

    async def index(self, request: Request) -> Response:
        return self.answer(INDEX, request)

    async def icon(self, request: Request) -> Response:
        """Browsers ask for it where no page has named another."""
        return self.answer(ICON, request)

    async def file(self, request: Request) -> Response:
        return self.answer(request.path_params["path"], request)

    def answer(self, name: str, request: Request) -> Response:
        """404 for what is no file of the page."""
        found = self._file(name)
        if found is None:
            return Response(b"there is no such file\n", 404, HEADERS, "text/plain; charset=utf-8")
        headers = {**HEADERS, "etag": found.tag, "content-type": found.kind}
        if found.tag in (each.strip() for each in request.headers.get("if-none-match", "").split(",")):
            return Response(status_code=304, headers=headers)
        if found.zipped is not None and takes_gzip(request.headers.get("accept-encoding", "")):
            return Response(found.zipped, headers={**headers, "content-encoding": "gzip"})
        return Response(found.plain, headers=headers)

    def _file(self, name: str) -> PageFile | None:
        parts = name.split("/")
        path = self._directory.joinpath(*parts)
        if not all(PART.fullmatch(part) for part in parts) or path.suffix not in TYPES:
            return None
        try:
            state = path.stat()
            stamp = state.st_mtime_ns, state.st_size
            known = self._files.get(path)
            if known is None or known.stamp != stamp:
                known = self._files[path] = page_file(path, stamp)
        except OSError:
            self._files.pop(path, None)
            return None
        return known


def page_file(path: Path, stamp: tuple[int, int]) -> PageFile:
    """raises: OSError"""
    data = path.read_bytes()
    zipped = None
    if len(data) >= GZIP_BYTES_MIN and path.suffix not in COMPRESSED:
        zipped = gzip.compress(data, 9, mtime=0)
    return PageFile(stamp, TYPES[path.suffix], f'"{hashlib.sha256(data).hexdigest()[:32]}"', data, zipped)


def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding names gzip, and not with the weight 0."""
    for each in accepted.split(","):
        name, _, weight = each.partition(";")
        if name.strip().lower() == "gzip":
            return weight.replace(" ", "").lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
