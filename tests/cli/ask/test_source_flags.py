"""Which broker is asked: what is named is asked, and nothing else; what is in use only where nothing is named."""

import argparse
import socket
from pathlib import Path

import pytest

from rumq.cli.ask.contexts import Contexts, SavedContext, path_of, save
from rumq.cli.ask.rest_source import RestSource
from rumq.cli.ask.socket_source import SocketSource
from rumq.cli.ask.source_flags import add_source_flags, source_of
from rumq.cli.main import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("RUMQ_TOKEN", "of-the-environment")
    monkeypatch.delenv("RUMQ_CONTEXT", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text("of-a-file\n")
    (tmp_path / "token").chmod(0o600)
    return tmp_path


def chosen(*words: str) -> SocketSource | RestSource:
    parser = argparse.ArgumentParser()
    add_source_flags(parser)
    found = source_of(parser.parse_args(words))
    assert isinstance(found, SocketSource | RestSource)
    return found


def token_of(source: SocketSource | RestSource) -> str:
    assert isinstance(source, RestSource)
    return source._token


def remember(current: str = "", **contexts: SavedContext) -> None:
    import os

    save(path_of(os.environ), Contexts(current=current, contexts=contexts))


def test_without_a_flag_it_is_the_context_in_use_and_else_the_usual_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert chosen().name == "rumq-data"
    remember("a", a=SavedContext(url="http://a:1"), b=SavedContext(data="/b"))
    assert chosen().name == "http://a:1"
    assert chosen("--data", "d").name == "d", "a flag counts more than what is in use"
    assert chosen("--url", "http://c:1").name == "http://c:1"
    monkeypatch.setenv("RUMQ_CONTEXT", "b")
    assert chosen().name == "/b"
    assert chosen("--context", "a").name == "http://a:1"


def test_the_token_is_of_a_flag_else_of_the_context_else_of_the_environment() -> None:
    remember(
        a=SavedContext(url="http://a", token="of-the-context"), b=SavedContext(url="http://b", token_file="token"),
        c=SavedContext(url="http://c"),
    )  # fmt: skip
    assert token_of(chosen("--url", "http://x")) == "of-the-environment"
    assert token_of(chosen("--url", "http://x", "--token-file", "token")) == "of-a-file"
    assert token_of(chosen("--context", "a")) == "of-the-context"
    assert token_of(chosen("--context", "a", "--token-file", "token")) == "of-a-file"
    assert token_of(chosen("--context", "b")) == "of-a-file"
    assert token_of(chosen("--context", "c")) == "of-the-environment"


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--url", "http://x", "--data", "d"), 2, "cannot be combined with --data"),
        (("--context", "a", "--url", "http://x"), 2, "cannot be combined with --url"),
        (("--data", "d", "--cafile", "f"), 2, "--cafile: is of a gateway"),
        (("--token-file", "token"), 2, "--token-file: is of a gateway"),
        (("--context", "nobody"), 1, "there is no context 'nobody'"),
        (("--url", "http://x", "--cafile", "none"), 1, "there is no such file"),
        (("--url", "http://x", "--token-file", "none"), 1, "No such file"),
    ],
)
def test_flags_that_do_not_fit_are_refused(
    words: tuple[str, ...], status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", "status", *words]) == status
    assert says in capsys.readouterr().err


def test_what_is_named_and_unreachable_is_an_error_and_nothing_else_is_asked(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A socket of a broker that was killed, a directory without one, a port where nobody listens."""
    (home / "killed").mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(home / "killed" / "ask.sock"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    remember("a", a=SavedContext(data=str(home / "killed")))
    for words in (("--data", "killed"), ("--data", "none"), ("--url", url), ("--context", "a"), ()):
        assert main(["ask", "status", *words]) == 1
        said = capsys.readouterr()
        assert not said.out and ("no broker answers" in said.err or "nobody answers" in said.err), words


@pytest.mark.parametrize(
    ("url", "is_warned"),
    [
        ("http://broker.lan:8080", True),
        ("http://10.0.0.7:8080", True),
        ("https://broker.lan:8080", False),
        ("http://localhost:8080", False),
        ("http://127.0.0.1:8080", False),
        ("http://[::1]:8080", False),
    ],
)
def test_a_token_that_would_cross_the_network_in_the_clear_is_told(
    url: str, is_warned: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remember("plant", plant=SavedContext(url=url, token="secret"))
    chosen()
    said = capsys.readouterr().err
    assert (("in the clear to " + url) in said and "https://" in said) if is_warned else not said
    monkeypatch.delenv("RUMQ_TOKEN")
    remember("plant", plant=SavedContext(url=url))
    chosen()
    assert capsys.readouterr().err == "", "without a token there is nothing to hear"
