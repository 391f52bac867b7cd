"""docs/guides/cluster.md: its settings are valid, and its commands are commands."""

import re
import shlex
from pathlib import Path

import pytest

from rumq.process.certificates.node_certificates import check_node_certificates
from rumq.settings.load import load_settings
from tests.cli.conftest import rumqd

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "cluster.md").read_text()
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


def test_the_files_for_tls_are_those_that_the_command_makes(tmp_path: Path) -> None:
    [words] = [shlex.split(line)[1:] for line in LINES if line.startswith("rumqd certs node") and "--node n1" in line]
    words[words.index("node-certs")] = str(tmp_path / "nodes")
    assert rumqd(*words).status == 0
    path = tmp_path / "config.toml"
    path.write_text(TOML.replace("nN", "n2").replace(".N", ".2").replace("/etc/rumq", str(tmp_path)))
    check_node_certificates(load_settings(path, {}).settings)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_order_is_one_that_a_node_could_be_given(command: str, tmp_path: Path) -> None:
    words = shlex.split(command, comments=True)[1:]
    if "--data" in words:
        at = words.index("--data")
        del words[at : at + 2]
    ended = rumqd(*words, "--data", str(tmp_path))
    assert ended.status == 1 and "no node of a cluster answers" in ended.err


def test_every_event_of_the_page_is_an_event() -> None:
    events = (Path(__file__).parents[3] / "docs" / "reference" / "events.md").read_text()
    named = set(re.findall(r"`(cluster\.[a-z]+_?[a-z_]*)`", PAGE))
    settings = {name for name in named if f"`{name}`" not in events}
    assert settings <= {f"cluster.{key}" for key in load_settings().settings.cluster.__struct_fields__}
    assert len(named - settings) > 10
