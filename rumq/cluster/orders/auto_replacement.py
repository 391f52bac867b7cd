"""Copies on nodes that have been gone for long move to other nodes, by orders to the leaders of this node.

Each agent looks after the shards that are led beside it, so that no two give orders for one. Knows no clock: times are
arguments."""

from __future__ import annotations

from rumq.cluster.control.agent_messages import Order
from rumq.cluster.control.records import View
from rumq.cluster.orders.placement import due_replacements, replaced
from rumq.events.output import get_logger

AGAIN_SECONDS = 60.0  # until an order that changed nothing is given again

log = get_logger("rumq.cluster")


class AutoReplacement:
    """replace_seconds: 0: never"""

    def __init__(self, replace_seconds: float) -> None:
        self._seconds = replace_seconds
        self._gone_since: dict[str, float] = {}
        self._ordered_at: dict[int, float] = {}

    def orders(self, view: View, now: float) -> list[Order]:
        """What is due. now: monotonic, in seconds. A view that is not current says nothing of who is gone."""
        if not self._seconds or not view.is_current:
            self._gone_since.clear()
            return []
        alive = {node.id for node in view.nodes}
        records = [each.record for each in view.shards]
        gone = {each for record in records for each in record.replicas} - alive
        self._gone_since = {each: self._gone_since.get(each, now) for each in gone}
        orders = []
        for due in due_replacements(records, view.nodes, self._gone_since, now, self._seconds):
            record = records[due.shard]
            is_waiting = now - self._ordered_at.get(due.shard, -AGAIN_SECONDS) < AGAIN_SECONDS
            if record.leader != view.node or record.learners or is_waiting:
                continue
            self._ordered_at[due.shard] = now
            log.info("cluster.replacing", shard=due.shard, gone=due.gone, to=due.to)
            orders.append(Order(0, "members", due.shard, members=replaced(record, due)))
        return orders
