"""Events for the operator: every event of the loop's thread is logged here, with its level.

docs/reference/events.md lists them. Knows no client, no log."""
# compiled: warm

from __future__ import annotations

from typing import Any

from rumq.events.output import Teller, teller, when_set_up

LEVELS = {
    "auth.failed": "error",
    "broker.failed": "error",
    "broker.turn_slow": "warning",
    "certificate.refused": "error",
    "client.crashed": "error",
    "clock.jumped": "warning",
    "client.refused": "warning",
    "cluster.agent_unreachable": "error",
    "cluster.certificate_refused": "warning",
    "cluster.copies_disagree": "error",
    "cluster.insecure": "warning",
    "cluster.unnamed_certificates": "warning",
    "cluster.copy_damaged": "error",
    "cluster.copy_doubted": "error",
    "cluster.copy_failed": "error",
    "cluster.copy_unreadable": "warning",
    "cluster.deposed": "warning",
    "cluster.disk_unwell": "error",
    "cluster.epoch_back": "error",
    "cluster.resigns": "warning",
    "cluster.waits_ended": "warning",
    "cluster.feed_failed": "error",
    "cluster.follower_lost": "warning",
    "cluster.clients_sent_away": "warning",
    "cluster.quorum_lost": "error",
    "bridge.doubtful": "warning",
    "bridge.gap": "warning",
    "bridge.lost": "warning",
    "bridge.refused": "warning",
    "bridge.unforgotten": "warning",
    "bridges.died": "error",
    "bridges.refused": "warning",
    "consumer.lagging": "warning",
    "data.exposed": "warning",
    "disk.filling": "warning",
    "function.failed": "warning",
    "function.gap": "warning",
    "function.restarted": "warning",
    "function.waits": "warning",
    "functions.died": "error",
    "disk.low": "warning",
    "queues.channel_waits": "warning",
    "queues.dead_letters_wait": "warning",
    "queues.delays_wait": "warning",
    "queues.depth_unknown": "warning",
    "queues.dropped": "warning",
    "queues.unavailable": "warning",
    "secrets.exposed": "warning",
    "mosquitto.left_out": "warning",
    "mosquitto.listener_closed": "error",
    "orders.restored": "warning",
    "permission.refused": "warning",
    "connection.refused": "warning",
    "gateway.overloaded": "warning",
    "gateway.refused": "warning",
    "listener.accept_failed": "warning",
    "listener.closed": "warning",
    "listener.open": "warning",
    "connection.shed": "warning",
    "listener.overloaded": "warning",
    "listener.rate_reached": "warning",
    "flight.died": "error",
    "flight.failed": "error",
    "flight.refused": "warning",
    "gateway.died": "error",
    "gateway.failed": "error",
    "grpc.died": "error",
    "grpc.failed": "error",
    "history.put_aside": "warning",
    "history.unwritten": "warning",
    "kernels.plain": "warning",
    "kafka.commits_damaged": "error",
    "kafka.commits_failed": "error",
    "kafka.died": "error",
    "kafka.failed": "error",
    "kafka.gap": "warning",
    "kafka.groups_refused": "warning",
    "kafka.refused": "warning",
    "lake.died": "error",
    "lake.failed": "error",
    "lake.gap": "warning",
    "log.failed": "error",
    "log.full": "error",
    "log.gap": "error",
    "log.offline": "error",
    "log.recovered": "warning",
    "log.restored": "info",
    "log.unreachable": "error",
    "log.missing": "error",
    "log.unwritten": "error",
    "mirror.failed": "error",
    "mirror.gap": "warning",
    "modules.stale": "warning",
    "publish.slowed": "warning",
    "relay.refused": "warning",
    "refusals.summed": "warning",
    "retained.full": "warning",
    "retention.held": "warning",
    "settings.refused": "error",
    "shard.crashing": "error",
    "shard.detoured": "warning",
    "shard.died": "error",
    "shard.failed": "error",
    "shard.link_failed": "error",
    "shard.lost": "warning",
    "shard.missing": "warning",
    "shard.silent": "error",
    "shard.waits_ended": "warning",
    "task.failed": "error",
    "topic.refused": "warning",
    "trace.export_failed": "warning",
}


def tell(event: str, /, **fields: Any) -> None:
    """Write one event. An `exc_info` field adds the exception that is being handled.

    Each connection tells three or so: to make a logger for each would cost more than to accept it."""
    write = _tellers.get(event)
    if write is None:
        floor = event.partition(".")[0]
        write = _tellers[event] = teller(f"rumq.{floor}", LEVELS.get(event, "info"))
    write(event, fields)


_tellers: dict[str, Teller] = {}
when_set_up(_tellers.clear)
