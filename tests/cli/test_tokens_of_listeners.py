"""Rules and mount points of listeners hold for no token, and for nobody who comes by Flight: users there are refused
wherever settings are read, and the error names file, key, value and what is allowed."""

import json
from pathlib import Path

import pytest

from rumq.errors import ConfigError
from rumq.process.listeners.gateway_listener import with_gateway
from rumq.process.listeners.listener_policies import ListenerPolicies
from rumq.process.wiring.gateway_settings import check_gateway, tokens_of
from rumq.process.wiring.sidecars import check_flight
from rumq.settings.load import load_settings
from tests.broker_process import Rumqd
from tests.cli.conftest import rumqd

RULES = '[[rule]]\nallow = ["publish", "subscribe", "replay"]\ntopics = ["#"]\n'
LISTENERS = {
    "mount": 'mount_point = "site-7/"',
    "rules": 'rules_file = "{folder}/rules.toml"',
    "mount and rules": 'mount_point = "site-7/"\nrules_file = "{folder}/rules.toml"',
}
REFUSED = ["mount", "rules", "mount and rules"]


def written(folder: Path, listener: str, more: str = "") -> Path:
    (folder / "rules.toml").write_text(RULES)
    (folder / "data").mkdir(mode=0o700, exist_ok=True)
    path = folder / "config.toml"
    text = f'{more.format(folder=folder)}\n[data]\ndir = "{folder}/data"\n[[listener]]\nport = 0\n'
    path.write_text(f"{text}[[listener]]\nport = 0\n{listener.format(folder=folder)}\n")
    return path


def token(folder: Path, *words: str) -> None:
    made = rumqd("token", "add", *words, "--data", str(folder / "data"))
    assert made.status == 0, made.err


def fault(path: Path) -> str:
    settings = with_gateway(load_settings(path).settings)
    try:
        check_gateway(settings)
    except ConfigError as found:
        return str(found)
    return ""


@pytest.mark.parametrize("kind", REFUSED)
def test_a_token_with_a_user_is_refused_beside_rules_or_mounts_of_a_listener(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, LISTENERS[kind], "[gateway]\nport = -1")
    token(tmp_path, "desk", "--user", "anna")
    why = fault(path)
    key = 'mount_point = "site-7/"' if "mount" in kind else "rules_file = "
    for words in ("gateway-tokens", 'token desk.user = "anna"', "expected no user", f"listener[1].{key}"):
        assert words in why
    assert "gateway.rules_file" in why, "the way out"


@pytest.mark.parametrize(
    ("listener", "more"),
    [
        ("", "[gateway]\nport = -1"),
        (LISTENERS["mount"], '[gateway]\nport = -1\nrules_file = "{folder}/rules.toml"'),
        (LISTENERS["rules"], '[gateway]\nport = -1\n[auth]\nrules_file = "{folder}/rules.toml"'),
    ],
)
def test_rules_that_hold_for_tokens_allow_users(tmp_path: Path, listener: str, more: str) -> None:
    path = written(tmp_path, listener, more)
    token(tmp_path, "desk", "--user", "anna")
    assert fault(path) == ""


def test_a_token_without_a_user_is_the_operators_own(tmp_path: Path) -> None:
    path = written(tmp_path, LISTENERS["mount"], "[gateway]\nport = -1")
    token(tmp_path, "ops", "--role", "administer")
    assert fault(path) == "" and len(tokens_of(load_settings(path).settings)) == 1


def test_rules_of_the_gateway_hold_for_its_clients_and_for_nobody_else(tmp_path: Path) -> None:
    path = written(tmp_path, "", '[gateway]\nport = -1\nrules_file = "{folder}/rules.toml"')
    first, second, own = ListenerPolicies(with_gateway(load_settings(path).settings)).policies
    assert own.is_gateway and own.rules is not None and first.rules is second.rules is None
    (tmp_path / "rules.toml").write_text("nonsense")
    with pytest.raises(ConfigError, match=r"gateway\.rules_file"):
        ListenerPolicies(with_gateway(load_settings(path).settings))


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize(
    ("more", "is_refused"),
    [
        ('[auth]\npassword_file = "{folder}/users"', True),
        ('[auth]\npassword_file = "{folder}/users"\n[flight]\nrules_file = "{folder}/rules.toml"', False),
        ("", False),  # nobody has a name there
    ],
)
def test_users_of_flight_need_rules_of_their_own_likewise(
    tmp_path: Path, kind: str, more: str, is_refused: bool
) -> None:
    assert rumqd("passwd", "-b", "-c", str(tmp_path / "users"), "anna", "secret").status == 0
    settings = load_settings(written(tmp_path, LISTENERS[kind], more)).settings
    if not is_refused:
        check_flight(settings)
        return
    with pytest.raises(ConfigError, match=r"flight\.rules_file = .*expected a file of rules: listener\[1\]"):
        check_flight(settings)


def test_check_start_reload_and_token_add_refuse_it(tmp_path: Path) -> None:
    mounted = written(tmp_path, LISTENERS["mount"], "[gateway]\nport = -1")
    added = rumqd("token", "add", "desk", "--user", "anna", "--config", str(mounted))
    assert added.status == 2 and "expected no user" in added.err and "site-7/" in added.err
    assert not (tmp_path / "data" / "gateway-tokens").exists()
    token(tmp_path, "desk", "--user", "anna")
    checked = rumqd("check", "--config", str(mounted))
    assert checked.status == 2 and "expected no user" in checked.err
    started = rumqd("run", "--config", str(mounted))
    assert started.status == 2 and "expected no user" in started.err

    open_to_all = written(tmp_path, "", "[gateway]\nport = -1")
    assert rumqd("check", "--config", str(open_to_all)).status == 0
    broker = Rumqd(tmp_path / "data", "--config", str(open_to_all))
    broker.start()
    try:
        written(tmp_path, LISTENERS["mount"], "[gateway]\nport = -1")
        broker.hang_up()
        told = broker.event("settings.refused")
        assert "expected no user" in told["why"] and not broker.named("settings.reloaded")
    finally:
        broker.end()


def test_a_token_is_put_where_the_settings_say(tmp_path: Path) -> None:
    path = written(tmp_path, "", f'[gateway]\nport = -1\ntokens_file = "{tmp_path}/tokens"')
    made = rumqd("token", "add", "desk", "--user", "anna", "--config", str(path), "--json")
    assert made.status == 0 and json.loads(made.out)["user"] == "anna"
    assert "desk" in rumqd("token", "list", "--file", f"{tmp_path}/tokens").out
    assert "desk" in rumqd("token", "list", "--config", str(path)).out
