"""What a command prints, a program can read: --json everywhere, or a reason why not.

docs/guides/cli.md has the table."""

import json
import re
from pathlib import Path

import pytest

from rumq.cli.main import build_parser
from rumq.cli.parsers import every_command
from tests.cli.conftest import Broker, rumqd

ROOT = Path(__file__).parents[2]
COMMANDS = {" ".join(words): parser for words, parser in every_command(build_parser())}
WITHOUT = {
    "run": "serves; its events are JSON lines (events.format)", "gateway": "serves, as run", "grpc": "serves, as run",
    "kafka": "serves, as run", "flight": "serves, as run", "mirror": "serves, as run", "pub": "prints nothing",
    "top": "a picture; rumqd ask has its figures",
    "log export": "writes JSON lines or Parquet", "spark run": "the output of a job",
    "spark offsets": "prints JSON", "init": "shows passwords once, to a person", "certs": "instructions for a person",
    "import-mosquitto": "prints a config.toml", "completion": "prints shell code", "context add": "prints nothing",
    "context use": "prints nothing", "context rm": "prints nothing",
    "cluster add": "lines as it goes; cluster status has the outcome", "cluster remove": "as cluster add",
    "cluster drain": "as cluster add", "cluster move": "as cluster add", "cluster rebalance": "as cluster add",
    "cluster force-leader": "a dialog with a person",
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_json_or_a_reason_why_not(name: str) -> None:
    flags = COMMANDS[name]._option_string_actions
    assert ("--json" in flags) != (name in WITHOUT), "in one of both"


def test_the_reasons_are_of_commands_and_documented() -> None:
    assert WITHOUT.keys() <= COMMANDS.keys()
    text = (ROOT / "docs/guides/cli.md").read_text()
    for name in COMMANDS:
        word = "ask" if name.startswith("ask ") else name
        assert re.search(rf"`{word}[`,. ]", text), f"docs/guides/cli.md does not name {name}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("json")
    (path / "users").touch(mode=0o600)
    assert rumqd("passwd", "users", "alice", stdin=b"secret\n", cwd=path).status == 0
    (path / "rules.toml").write_text('[[rule]]\nusers = ["alice"]\nallow = ["publish"]\ntopics = ["plant/#"]\n')
    (path / "rules.toml").chmod(0o600)
    return path


def said(folder: Path, *words: str, status: int = 0) -> list[dict[str, object]]:
    done = rumqd(*words, cwd=folder)
    assert (done.status, done.err) == (status, ""), done
    return [json.loads(line) for line in done.out.splitlines()]


def test_settings_have_value_and_source(folder: Path) -> None:
    (found,) = said(folder, "config", "--set", "log.linger_ms=2", "--json")
    assert found["log.linger_ms"] == {"value": 2.0, "source": "--set"}
    assert found["listener.port"] == {"value": 1883, "source": "default"}


def test_a_check_says_what_is_wrong(folder: Path) -> None:
    (good,) = said(folder, "check", "--json", "--set", "listener.port=0")
    assert good == {"ok": True, "faults": [], "warnings": [], "is_running": False}
    (bad,) = said(folder, "check", "--json", "--set", "log.linger_ms=x", status=2)
    assert not bad["ok"] and "log.linger_ms" in str(bad["faults"]) and bad["is_running"] is None
    (bad,) = said(folder, "check", "--json", "--set", "auth.rules_file=none", "--set", "listener.port=0", status=2)
    assert not bad["ok"] and "none" in str(bad["faults"])


def test_rules_tokens_users_and_the_version(folder: Path) -> None:
    words = ("alice", "c", "publish", "plant/7", "--rules", "rules.toml", "--json")
    (yes,) = said(folder, "acl", "test", *words)
    assert yes == {
        "allowed": True,
        "reach": "all",
        "rules": [{"rule": 1, "effect": "allows", "filter": "plant/#"}],
    }
    (no,) = said(folder, "acl", "test", "bob", *words[1:], status=1)
    assert no == {"allowed": False, "reach": "none", "rules": []}
    (made,) = said(folder, "token", "add", "ops", "--role", "publish", "--data", ".", "--json")
    assert made["name"] == "ops" and made["roles"] == ["publish"] and made["secret"]
    (listed,) = said(folder, "token", "ls", "--data", ".", "--json")
    assert listed == {"name": "ops", "roles": ["publish"], "user": None, "expires_us": None}
    assert said(folder, "passwd", "-L", "users", "--json") == [{"user": "alice"}]
    assert rumqd("passwd", "-L", "users", cwd=folder).out == "alice\n"
    (version,) = said(folder, "version", "--json")
    assert version.keys() == {"version", "kernels", "python", "stale"}
    assert rumqd("version").out == rumqd("--version").out


def test_an_export_to_the_lake_says_its_counts(folder: Path) -> None:
    pytest.importorskip("pyarrow")
    broker = Broker(folder / "data")
    assert rumqd("pub", "-p", broker.port, "plant/7", "-m", "21.5", "-q", "1").status == 0
    assert rumqd("ask", "seal", "--stream", "main", "--data", str(folder / "data")).status == 0
    assert broker.stop() == 0
    done = rumqd("lake", "export", "--data", "data", "--to", "lake", "--once", "--json", cwd=folder)
    (counts,) = map(json.loads, done.out.splitlines())
    assert done.status == 0 and counts["rows"] == 1 and counts["gaps"] == 0
    (table,) = map(json.loads, rumqd("lake", "table", "delta", "lake", "--json", cwd=folder).out.splitlines())
    assert table == {"version": 0, "new": 1}
