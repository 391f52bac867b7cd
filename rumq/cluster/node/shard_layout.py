"""How many partitions each stream has in this cluster, before a shard's process opens its copies.

All nodes have the partitions of the directory that the cluster began with, whatever a new directory would have: a topic
is in the same partition everywhere. Knows no record."""

from __future__ import annotations

import dataclasses
import select
import time
from collections.abc import Callable, Mapping, Sequence

from commitlog import StreamSpec
from rumq.cluster.connections.agent_socket import AgentSocket
from rumq.cluster.control.agent_messages import Seen
from rumq.cluster.control.records import View
from rumq.errors import RumqError
from rumq.settings.table import Settings

LOOK_SECONDS = 0.05


class WrongLayout(RumqError):
    """The settings of this node want other partitions than the cluster has. stream; wanted, found: counts"""

    def __init__(self, stream: str, wanted: int, found: int) -> None:
        super().__init__(stream, wanted, found)
        self.stream, self.wanted, self.found = stream, wanted, found

    def __str__(self) -> str:
        return (
            f"stream {self.stream}: partitions = {self.wanted}, and this cluster has {self.found}, which is fixed: "
            "leave `partitions` out, or set it to that number"
        )


def is_settled(view: View) -> bool:
    """Whether it is known: each shard has a record. An older version has formed a cluster without a layout."""
    return bool(view.shards) and all(
        each.revision or shard in view.epochs_back for shard, each in enumerate(view.shards)
    )


def met_view(agent_path: str, is_stopping: Callable[[], bool]) -> View | None:
    """The first view in which the cluster has begun; None once `is_stopping`. Waits for the agent and for other nodes.

    Nothing is lost by it: without a view a replica neither leads nor follows."""
    link: AgentSocket | None = None
    try:
        while not is_stopping():
            try:
                if link is None:
                    link = AgentSocket(agent_path, "starting")
                select.select([link], [], [], LOOK_SECONDS)
                for message in link.receive():
                    if isinstance(message, Seen) and is_settled(message.view):
                        return message.view
            except OSError:
                if link is not None:
                    link.close()
                link = None
                time.sleep(LOOK_SECONDS)
        return None
    finally:
        if link is not None:
            link.close()


def laid_out(streams: Sequence[StreamSpec], layout: Mapping[str, int], settings: Settings) -> list[StreamSpec]:
    """The streams with the cluster's numbers of partitions; one that it does not know keeps its own.

    raises: WrongLayout"""
    for each in settings.stream:
        if each.partitions and layout.get(each.name, each.partitions) != each.partitions:
            raise WrongLayout(each.name, each.partitions, layout[each.name])
    return [dataclasses.replace(spec, partitions=layout.get(spec.name, spec.partitions)) for spec in streams]
