"""Completion of the command line: the words that may come, and a real bash that asks for them."""

import subprocess
import sys
from pathlib import Path

import pytest

from rumq.cli.completion import SCRIPTS, words_for
from rumq.cli.main import lazy_parser, main
from tests.cli.conftest import ENVIRONMENT, rumqd


def words(*typed: str) -> list[str] | None:
    return words_for(lazy_parser(), typed)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (("as",), ["ask"]), (("ask", "clie"), ["clients", "client"]), (("ask", "clients", "--so"), ["--sort"]),
        (("ask", "clients", "--sort", "l"), ["lag", "lost"]), (("ask", "clients", "--sort=la"), ["--sort=lag"]),
        (("ask", "clients", "--sort", "=", "la"), ["lag"]), (("ask", "--data", "d", "ba"), ["bans", "ban"]),
        (("log", ""), ["ls", "read", "export", "verify"]), (("cluster", "mov"), ["move"]),
        (("lake", "table", ""), ["delta"]),
        (("run", "--data", ""), None), (("log", "verify", "--data=/va"), None), (("token", "l"), ["list", "ls"]),
        (("nothing", ""), []), (("ask", "ban", "--kind", "user", "--name", "a", "--ye"), ["--yes"]),
        (("--v",), ["--version"]),
        (("top", "sh"), ["shards"]), (("top", "shards", "--on"), ["--once"]),
        (("completion", ""), ["bash", "fish", "zsh"]),
    ],
)  # fmt: skip
def test_the_words_that_may_come(typed: tuple[str, ...], found: list[str] | None) -> None:
    assert words(*typed) == found


def test_what_is_hidden_is_not_offered() -> None:
    assert "--for-broker" not in (words("gateway", "--") or []) and "--words" not in (words("completion", "--") or [])


def test_contexts_are_offered_by_name(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    for name in ("plant", "mill"):
        assert rumqd("context", "add", name, "--url", "http://b:1", env=env).status == 0
    assert rumqd("completion", "--words", "context", "use", "", env=env).out.split() == ["mill", "plant"]
    assert rumqd("completion", "--words", "ask", "status", "--context", "p", env=env).out.split() == ["plant"]


def bash(typed: str, tmp_path: Path) -> list[str]:
    """What bash offers behind what is typed; the last word is the one that is being typed."""
    (tmp_path / "a file").touch()
    script = f"""
        rumqd() {{ {sys.executable} -m rumq "$@"; }}
        eval "$(rumqd completion bash)"
        [ "$(complete -p rumqd)" = "complete -F _rumqd rumqd" ] || exit 9
        COMP_WORDS=(rumqd {typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE="${{COMP_WORDS[*]}}"
        _rumqd
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, timeout=60, check=False, env=ENVIRONMENT,
        cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("as", ["ask"]), ("ask clients --sort l", ["lag", "lost"]), ("ask clients --sort = l", ["lag", "lost"]),
        ("log ver", ["verify"]), ("log verify --data a", ["a file"]), ("log verify --data ''", ["a file"]),
        ("ask nothing-like-it", []),
    ],
)  # fmt: skip
def test_a_real_bash_offers_them(typed: str, found: list[str], tmp_path: Path) -> None:
    assert bash(typed, tmp_path) == found


def test_every_script_asks_rumqd(capsys: pytest.CaptureFixture[str]) -> None:
    for shell, script in SCRIPTS.items():
        assert main(["completion", shell]) == 0 and capsys.readouterr().out == script
        assert "rumqd completion --words" in script
    assert main(["completion"]) == 2 and "name a shell" in capsys.readouterr().err
