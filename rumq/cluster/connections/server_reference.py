"""Which other node a client is sent to, as MQTT 5 tells it: Server Reference, 4.13. Pure: by a view alone."""

from __future__ import annotations

from zlib import crc32

from rumq.cluster.control.records import View


def maybe_reference(view: View | None, own: str, client_id: str = "") -> str | None:
    """Address of another node for clients, "host:port"; None if no other serves any. own: id of the node that asks

    client_id: clients are spread over the nodes by it"""
    if view is None:
        return None
    others = [node for node in view.nodes if node.id != own and not node.leaves and node.mqtt]
    if not others:
        return None
    others.sort(key=lambda node: node.id)
    return others[crc32(client_id.encode()) % len(others)].mqtt[0]
