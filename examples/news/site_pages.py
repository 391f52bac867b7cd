"""The web side of both services: the page, the posts as server-sent events, and a form's posts as JSON."""

import argparse
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import trio
from board import Board, Post
from board_service import BoardService, Config, connected, load
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from web_server import serve, until_stopped

import rumq

HERE = Path(__file__).parent
FILES = {
    "rumq.css": Path(rumq.__file__).parent / "gateway/page/style.css",
    "site.css": HERE / "site.css", "site.js": HERE / "site.js",
}  # fmt: skip
HEADERS = {"content-security-policy": "default-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'"}
QUIET_SECONDS = 15.0  # then the stream says something, so that proxies keep it
POST_BYTES_MAX = 20_000


def main(kind: str, page: str) -> None:
    """The service of posts of one kind. page: its HTML file"""
    parser = argparse.ArgumentParser(description=f"the {kind} service; the file has what it needs")
    parser.add_argument("config", help="its file, such as examples/news/news.toml")
    parser.add_argument("--port", type=int, help="instead of the file's")
    parser.add_argument("--other", help="address of the other service, instead of the file's")
    parser.add_argument("--token-file", help="instead of the file's")
    parser.add_argument("--gateway", dest="gateways", action="append", help="instead of the file's; once for each node")
    given = vars(parser.parse_args())
    trio.run(run, kind, page, load(given.pop("config"), given))


async def run(kind: str, page: str, config: Config) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_stopped, nursery.cancel_scope)
        async with connected(config) as client:
            service = BoardService(config, client)
            await nursery.start(service.run)
            app = site(kind, (HERE / page).read_text().replace("OTHER", config.other), service)
            await serve(app, config.host, config.port, lambda: print(f"http://{config.host}:{config.port}", flush=True))


def site(kind: str, page: str, service: BoardService) -> Starlette:
    async def index(request: Request) -> Response:
        return HTMLResponse(page, headers=HEADERS)

    async def file(request: Request) -> Response:
        path = FILES.get(request.path_params["name"])
        return FileResponse(path) if path is not None else Response(status_code=404)

    async def events(request: Request) -> Response:
        """After a loss the browser says which one it had last."""
        last = request.headers.get("last-event-id", "0")
        count = int(last) if last.isdecimal() else 0
        return StreamingResponse(as_events(service.board, count), media_type="text/event-stream")

    async def post(request: Request) -> Response:
        if not request.headers.get("content-type", "").startswith("application/json"):
            return JSONResponse({"why": "expected application/json"}, 415)  # which no form of another site sends
        body = await request.body()
        if len(body) > POST_BYTES_MAX:
            return JSONResponse({"why": f"expected at most {POST_BYTES_MAX} bytes"}, 413)
        try:
            made = msgspec.json.decode(body, type=Post)
        except msgspec.MsgspecError as fault:
            return JSONResponse({"why": str(fault)}, 400)
        if made.kind != kind:
            return JSONResponse({"why": f"expected a post of kind {kind}"}, 400)
        await service.push(made)
        return JSONResponse({"id": made.id}, 201)

    return Starlette(
        routes=[
            Route("/", index), Route("/events", events), Route("/posts", post, methods=["POST"]),
            Route("/{name}", file),
        ]
    )  # fmt: skip


async def as_events(board: Board, count: int) -> AsyncIterator[bytes]:
    """HTML, 9.2. count: posts that the browser has already"""
    yield b"retry: 500\n\n"
    while True:
        found = await board.wait_more(count, QUIET_SECONDS)
        if not found:
            yield b": \n\n"
        for each in found:
            count += 1
            yield b"id: %d\ndata: %s\n\n" % (count, msgspec.json.encode(each))
