"""The files of the web page: to everybody, as they are, and nothing but them."""

import gzip
import re
from pathlib import Path

import pytest
from starlette.requests import Request

from rumq.gateway.page_files import DIRECTORY, POLICY, TYPES, PageFiles
from tests.gateway.conftest import Gateway

SCRIPT = b"export const title = 'rumq';\n" * 100


@pytest.fixture
def files(tmp_path: Path) -> PageFiles:
    (tmp_path / "page/views").mkdir(parents=True)
    (tmp_path / "page/index.html").write_bytes(b"<!doctype html>")
    (tmp_path / "page/views/clients.js").write_bytes(SCRIPT)
    (tmp_path / "page/.hidden.js").write_bytes(b"x")
    (tmp_path / "page/notes.py").write_bytes(b"x")
    (tmp_path / "outside.js").write_bytes(b"x")
    return PageFiles(tmp_path / "page")


def asked(**headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": raw, "query_string": b""})


def test_a_file_has_its_type_and_the_headers_that_keep_other_sites_out(files: PageFiles) -> None:
    answer = files.answer("views/clients.js", asked())
    assert (answer.status_code, answer.body) == (200, SCRIPT)
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["content-security-policy"] == POLICY and "unsafe" not in POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_it_is_sent_gzipped_to_who_takes_that(files: PageFiles) -> None:
    answer = files.answer("views/clients.js", asked(accept_encoding="br, gzip"))
    assert answer.headers["content-encoding"] == "gzip" and gzip.decompress(bytes(answer.body)) == SCRIPT
    assert len(answer.body) < len(SCRIPT) / 10
    for refuses in ("br", "gzip;q=0", ""):
        assert files.answer("views/clients.js", asked(accept_encoding=refuses)).body == SCRIPT


def test_it_is_not_sent_again_unless_it_has_changed(files: PageFiles, tmp_path: Path) -> None:
    tag = files.answer("index.html", asked()).headers["etag"]
    again = files.answer("index.html", asked(if_none_match=f'"other", {tag}'))
    assert (again.status_code, again.body, again.headers["cache-control"]) == (304, b"", "no-cache")
    (tmp_path / "page/index.html").write_bytes(b"<!doctype html><title>rumq</title>")
    fresh = files.answer("index.html", asked(if_none_match=tag))
    assert fresh.status_code == 200 and b"title" in fresh.body


@pytest.mark.parametrize(
    "name",
    [
        "", "views", "views/", "../outside.js", "views/../../outside.js", "/etc/passwd", ".hidden.js", "notes.py",
        "views//clients.js", "views\\clients.js", "clients.js\0", "none.js", "..", "a" * 5000 + ".js",
    ],
)  # fmt: skip
def test_nothing_else_is_sent(files: PageFiles, name: str) -> None:
    assert files.answer(name, asked()).status_code == 404


def test_the_page_is_served_without_a_token(gateway: Gateway) -> None:
    index = gateway.ask("GET", "/", token=None)
    assert index.status == 200 and index.headers["content-type"].startswith("text/html")
    assert gateway.ask("GET", "/page/index.html", token=None).body == index.body
    for path in ("/page/../tokens.py", "/page/%2e%2e/tokens.py", "/page/..%2ftokens.py", "/page/"):
        assert gateway.ask("GET", path, token=None).status == 404, path


def test_every_file_of_the_page_can_be_served() -> None:
    """So that the package has nothing that nobody gets, and no file that the server would refuse."""
    files = PageFiles()
    for path in DIRECTORY.rglob("*"):
        if path.is_file():
            name = str(path.relative_to(DIRECTORY))
            assert path.suffix in TYPES and files.answer(name, asked()).status_code == 200, name


def test_no_script_and_no_style_is_in_the_text_which_the_policy_would_refuse() -> None:
    for path in DIRECTORY.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", text), path


def test_a_token_learns_what_it_may(gateway: Gateway) -> None:
    assert gateway.get("me", token="sender") == {
        "name": "sender",
        "roles": ["publish"],
        "user": "",
        "reads": "all",
    }
    assert gateway.get("me", token="anna") == {
        "name": "anna",
        "roles": ["consume", "publish", "read"],
        "user": "anna",
        "reads": "all",
    }
    assert gateway.ask("GET", "/api/v1/me", token=None).status == 401


def test_no_cache_keeps_what_the_operator_sees(gateway: Gateway) -> None:
    for path in ("/api/v1/status", "/metrics", "/healthz", "/api/v1/clients?limit=900"):
        headers = gateway.ask("GET", path).headers
        assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff"), path
