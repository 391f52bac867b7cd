"""Bridges that were taken out of the settings while the broker was down: nothing of them is left once it runs again."""

from pathlib import Path

import pytest

import rumq
from rumq.bridge.counts import FOLDER, read_figures
from rumq.bridge.pairing import PairingFiles
from rumq.bridge.removed_bridges import has_bridges
from tests.broker_process import Rumqd
from tests.process.bridge.test_bridge_process import bridge_sessions, waited

BRIDGE = '[[bridge]]\nname = "{}"\nurl = "{}"\ntopics = ["a/# out 2"]\n'


@pytest.mark.parametrize("others", [(), ("stays",)])
def test_their_sessions_and_figures_go_with_the_next_start(others: tuple[str, ...], tmp_path: Path) -> None:
    """Also where none is left: a session would hold messages for nobody, and /metrics show a bridge that is down."""
    config = tmp_path / "config.toml"
    folder = tmp_path / "data" / FOLDER
    with rumq.broker() as centre:
        config.write_text("".join(BRIDGE.format(name, centre.url) for name in ("goes", *others)))
        edge = Rumqd(tmp_path / "data", "--config", str(config))
        try:
            edge.start()
            waited(lambda: sum(each["up"] for each in read_figures(folder).values()) == 1 + len(others))
            assert bridge_sessions(edge.data) == 1 + len(others)
            edge.stop()
            assert has_bridges(str(edge.data))
            config.write_text("".join(BRIDGE.format(name, centre.url) for name in others))
            edge.start()
            waited(lambda: read_figures(folder).keys() == set(others))
            waited(lambda: PairingFiles(folder).names() == list(others))
            waited(lambda: bridge_sessions(edge.data) == len(others))
            assert has_bridges(str(edge.data)) is bool(others)
        finally:
            edge.end()
