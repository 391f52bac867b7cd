"""A flood of strangers fills no log."""

from rumq.cluster.links.refusal_log import TOLD_MAX, WINDOW_SECONDS, RefusalLog


def test_a_window_has_a_bounded_number_of_events_and_then_the_count_of_the_rest() -> None:
    told: list[tuple[str, dict[str, object]]] = []
    log = RefusalLog(lambda name, **fields: told.append((name, fields)))
    for at in range(TOLD_MAX + 7):
        log.refused("10.0.0.9:1", "why", 50.0 + at / 1000)
    assert told == [("connection.refused", {"peer": "10.0.0.9:1", "transport": "cluster", "why": "why"})] * TOLD_MAX
    told.clear()
    log.look(50.0 + WINDOW_SECONDS - 0.1)
    assert not told
    log.refused("10.0.0.9:1", "later", 50.0 + WINDOW_SECONDS)
    summed = {"address": "", "of": "connection.refused", "count": 7, "seconds": WINDOW_SECONDS}
    assert told[0] == ("refusals.summed", summed) and told[1][1]["why"] == "later"
    told.clear()
    log.look(1e9)
    assert not told  # nothing was left out
