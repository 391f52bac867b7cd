"""What bridges have done can be read by another process."""

from pathlib import Path

from rumq.bridge.counts import (
    FILE,
    IN,
    OUT,
    STALE_SECONDS,
    WHY_CHARS_MAX,
    BridgeCounts,
    read_figures,
    read_live_figures,
    read_states,
    write_figures,
)


def test_figures_go_through_a_file(tmp_path: Path) -> None:
    assert read_figures(tmp_path) == {}
    counts = BridgeCounts(is_up=True, connections=3)
    counts.relayed[OUT].messages = 7
    counts.relayed[OUT].refused.update(["not authorized", "packet too large", "not authorized"])
    write_figures(tmp_path, {"centre": counts})
    found = read_figures(tmp_path)["centre"]
    assert (found["up"], found["connections"]) == (1, 3)
    assert (found[OUT]["messages"], found[OUT]["refused"], found[IN]["messages"]) == (7, 3, 0)


def test_a_bridge_whose_process_is_gone_is_not_connected(tmp_path: Path) -> None:
    assert read_states(tmp_path, 0.0) == {}
    write_figures(tmp_path, {"centre": BridgeCounts(is_up=True), "other": BridgeCounts()})
    written = (tmp_path / FILE).stat().st_mtime
    assert read_states(tmp_path, written + 1) == {"centre": True, "other": False}
    assert [each["up"] for each in read_live_figures(tmp_path, written + 1).values()] == [1, 0]
    assert read_states(tmp_path, written + STALE_SECONDS + 1) == {"centre": False, "other": False}
    gone = read_live_figures(tmp_path, written + STALE_SECONDS + 1)
    assert [each["up"] for each in gone.values()] == [0, 0], "what metrics and the command line show"


def test_the_figures_say_since_when_a_bridge_is_connected_or_away_and_why() -> None:
    """Away since the first failure, of as many as there are; the last one's text is cut: another broker wrote it."""
    counts = BridgeCounts(address="mqtt://centre")
    assert (counts.figures()["since_us"], counts.figures()["why"]) == (0, "")
    counts.note_failed(10, "refused")
    counts.note_failed(20, "x" * 9999)
    told = counts.figures()
    assert (told["up"], told["since_us"], told["address"]) == (0, 10, "mqtt://centre")
    assert told["why"] == "x" * WHY_CHARS_MAX
    counts.note_connected(30, "abc", "5.0")
    told = counts.figures()
    assert (told["up"], told["since_us"], told["broker"], told["mqtt"]) == (1, 30, "abc", "5.0")
    counts.note_failed(40, "it closed the connection")
    told = counts.figures()
    assert (told["up"], told["since_us"], told["why"], told["connections"]) == (0, 40, "it closed the connection", 1)
