"""What bridges have done can be read by another process."""

from pathlib import Path

from rumq.bridge.counts import IN, OUT, BridgeCounts, read_figures, write_figures


def test_figures_go_through_a_file(tmp_path: Path) -> None:
    assert read_figures(tmp_path) == {}
    counts = BridgeCounts(is_up=True, connections=3)
    counts.relayed[OUT].messages = 7
    counts.relayed[OUT].refused.update(["not authorized", "packet too large", "not authorized"])
    write_figures(tmp_path, {"centre": counts})
    found = read_figures(tmp_path)["centre"]
    assert (found["up"], found["connections"]) == (1, 3)
    assert (found[OUT]["messages"], found[OUT]["refused"], found[IN]["messages"]) == (7, 3, 0)
