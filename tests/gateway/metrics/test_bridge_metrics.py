"""Figures of bridges as metrics: one series for each bridge, and for each direction of it."""

from rumq.bridge.counts import IN, OUT, BridgeCounts
from rumq.gateway.metrics.exposition import FileFigures, exposition


def test_a_bridge_and_a_direction_are_labels() -> None:
    counts = BridgeCounts(is_up=True, connections=2)
    counts.relayed[OUT].messages, counts.relayed[IN].looped = 7, 4
    counts.relayed[OUT].refused["not authorized"] = 3
    text = exposition([], {}, {}, files=FileFigures(bridges={"centre": counts.figures()})).decode()
    for line in (
        'rumq_bridge_up{bridge="centre"} 1.0',
        'rumq_bridge_connections_total{bridge="centre"} 2.0',
        'rumq_bridge_messages_total{bridge="centre",direction="out"} 7.0',
        'rumq_bridge_messages_total{bridge="centre",direction="in"} 0.0',
        'rumq_bridge_refused_total{bridge="centre",direction="out"} 3.0',
        'rumq_bridge_looped_total{bridge="centre",direction="in"} 4.0',
    ):
        assert line in text
