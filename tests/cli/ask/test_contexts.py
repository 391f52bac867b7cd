"""Brokers by name, in a file that only the user can read; tokens are stored there and never printed."""

import json
import os
import stat
from pathlib import Path

import pytest

from rumq.cli.ask.contexts import Contexts, SavedContext, load, path_of, save, secret_in
from rumq.cli.main import main
from rumq.errors import RumqError

SECRET = "rumq_0123456789secret"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("RUMQ_CONTEXT", raising=False)
    monkeypatch.delenv("RUMQ_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["context", *words]) == status
    found = capsys.readouterr()
    return found.err if status else found.out


def test_a_context_is_added_listed_used_shown_and_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "token").write_text(SECRET)
    (home / "ca.pem").touch()
    said(capsys, "add", "plant", "--url", "https://b:8080/", "--token-file", "token", "--cafile", "ca.pem")
    said(capsys, "add", "here", "--data", "data")
    assert said(capsys, "ls").splitlines() == [f"  here   {home}/data", "  plant  https://b:8080"]
    said(capsys, "use", "plant")
    assert said(capsys, "ls").splitlines()[1] == "* plant  https://b:8080"
    shown = json.loads(said(capsys, "show", "--json"))
    assert shown == {
        "name": "plant", "in_use": True, "url": "https://b:8080", "data": None, "token": f"of {home}/token",
        "cafile": f"{home}/ca.pem",
    }  # fmt: skip
    said(capsys, "rm", "plant")
    assert "no context is in use" in said(capsys, "show", status=1)
    assert [json.loads(line)["name"] for line in said(capsys, "ls", "--json").splitlines()] == ["here"]


def test_the_file_is_the_users_alone_and_its_token_is_never_printed(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(SECRET + "\n"))
    said(capsys, "add", "plant", "--url", "http://b:1", "--token-stdin")
    path = home / "config" / "rumq" / "contexts.json"
    assert SECRET in path.read_text() and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    said(capsys, "use", "plant")
    for words in (("ls",), ("ls", "--json"), ("show",), ("show", "--json")):
        assert SECRET not in said(capsys, *words)
    assert "token   stored" in said(capsys, "show")
    path.chmod(0o640)
    assert f"chmod 600 {path}" in said(capsys, "ls", status=1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "a b", "--url", "http://x"), "expected a name of letters"),
        (("add", "a", "--url", "mqtt://x"), "expected http://host:port"),
        (("add", "a", "--url", "http://x", "--token-file", "none"), "none: there is no such file"),
        (("add", "a", "--data", "d", "--cafile", "c"), "needs neither token nor --cafile"),
        (("use", "nobody"), "there is no context 'nobody'; known are none"),
        (("rm", "nobody"), "there is no context 'nobody'"),
        (("show", "nobody"), "there is no context 'nobody'"),
    ],
)
def test_what_cannot_be_is_refused(
    home: Path, words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in said(capsys, *words, status=1)
    assert not (home / "config").exists()


def test_the_file_follows_xdg_and_survives_what_it_does_not_know(tmp_path: Path) -> None:
    assert path_of({"HOME": "/h"}) == Path("/h/.config/rumq/contexts.json")
    assert path_of({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}) == Path("/x/rumq/contexts.json")
    assert path_of({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}) == Path("/h/.config/rumq/contexts.json")
    path = tmp_path / "a" / "contexts.json"
    assert load(path) == Contexts()
    known = Contexts(current="a", contexts={"a": SavedContext(url="http://b", token=SECRET)})
    save(path, known)
    assert load(path) == known and os.listdir(path.parent) == ["contexts.json"]
    path.write_text("{")
    with pytest.raises(RumqError, match="repair or remove it"):
        load(path)


def test_a_token_file_has_a_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"  {SECRET}\nmore\n")
    path.chmod(0o644)
    with pytest.raises(RumqError, match=f"has a token, and everybody .* chmod o-rw {path}"):
        secret_in(str(path))
    path.chmod(0o640)
    assert secret_in(str(path)) == SECRET
    path.write_text("\n")
    with pytest.raises(RumqError, match="its first line is empty"):
        secret_in(str(path))
    with pytest.raises(RumqError, match="No such file"):
        secret_in(str(tmp_path / "none"))


def test_a_context_that_would_send_its_token_in_the_clear_is_kept_and_told(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "token").write_text(SECRET)
    assert main(["context", "add", "plant", "--url", "http://broker.lan:8080", "--token-file", "token"]) == 0
    assert "in the clear to http://broker.lan:8080" in capsys.readouterr().err
    assert main(["context", "add", "here", "--url", "http://localhost:8080", "--token-file", "token"]) == 0
    assert capsys.readouterr().err == ""
