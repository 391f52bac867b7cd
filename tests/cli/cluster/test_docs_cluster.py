"""docs/cluster.md: its settings are valid, and its commands are commands."""

import re
import shlex
from pathlib import Path

import pytest

from rumq.settings.load import Flag, load_settings
from tests.cli.conftest import rumqd

PAGE = (Path(__file__).parents[3] / "docs" / "cluster.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)
LINES = [line for block in BLOCKS for line in block.replace("\\\n", " ").splitlines()]
COMMANDS = [line for line in LINES if line.startswith("rumqd cluster")]
[TOML] = re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)


def test_the_settings_make_a_node(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(TOML.replace("nN", "n1").replace(".N", ".1"))
    settings = load_settings(path, {}).settings
    assert (settings.cluster.node, settings.cluster.host, settings.listener.host) == (
        "n1",
        "10.0.0.1",
        "10.0.0.1",
    )
    assert settings.stream[0].durability == "quorum"
    first, last = settings.cluster.port + 1, settings.cluster.port + settings.cluster.shards
    assert f"{first} to {last}" in PAGE


def test_the_flags_for_tls_are_settings(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(TOML.replace("nN", "n1").replace(".N", ".1"))
    [words] = [shlex.split(line) for line in LINES if "cluster.tls_certificate" in line]
    pairs = [words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "--set"]
    cluster = load_settings(path, {}, [Flag(key, value, "--set") for key, value in pairs]).settings.cluster
    assert (cluster.tls_certificate, cluster.tls_authority) == ("node-certs/server.pem", "node-certs/ca.pem")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_order_is_one_that_a_node_could_be_given(command: str, tmp_path: Path) -> None:
    words = shlex.split(command, comments=True)[1:]
    if "--data" in words:
        at = words.index("--data")
        del words[at : at + 2]
    ended = rumqd(*words, "--data", str(tmp_path))
    assert ended.status == 1 and "no node of a cluster answers" in ended.err


def test_every_event_of_the_page_is_an_event() -> None:
    events = (Path(__file__).parents[3] / "docs" / "events.md").read_text()
    named = set(re.findall(r"`(cluster\.[a-z]+_?[a-z_]*)`", PAGE))
    settings = {name for name in named if f"`{name}`" not in events}
    assert settings <= {f"cluster.{key}" for key in load_settings().settings.cluster.__struct_fields__}
    assert len(named - settings) > 10
