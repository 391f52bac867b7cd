"""Who published a traced message: its client, as far as it is known, and the acknowledgements that it waits for."""

from __future__ import annotations

from commitlog.log.store import Store
from rumq.session.connection.pending_acks import AckTracker, PendingAcks
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session
from rumq.shards.admin.listings.listings import PROTOCOLS
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.tracing.spans import Value
from rumq.tracing.tracer import TracedPublisher


class TracedPublishers:
    def __init__(self, store: Store, acks: AckTracker, registry: Registry) -> None:
        self._store, self._acks, self._registry = store, acks, registry

    def find(self, index: int, number: int, qos: int) -> TracedPublisher:
        """The publisher with a number in a partition. qos: above 0 it is among those that were promised something.

        Of a client with a user name and QoS 0 only the client id is known. Cost: linear in this turn's promises"""
        partition = self._store.partitions[index]
        names = partition.outgoing if isinstance(partition, RemotePartition) else None
        name = names.publisher_name(number) if names is not None else partition.publisher_names.get(number, b"")
        client_id = name.decode(errors="replace")
        found = self._promised(client_id, index, number) if qos else None
        session: Session | None = found.session if found is not None else None
        if session is None:
            session = self._registry.sessions.get(client_id)
        return TracedPublisher(client_id, found, attributes_of(session))

    def _promised(self, client_id: str, index: int, number: int) -> PendingAcks | None:
        for client in self._acks.promised:
            numbers = client.session.publishers
            if client.session.client_id == client_id and numbers is not None and numbers[index] == number:
                return client
        return None


def attributes_of(session: Session | None) -> dict[str, Value]:
    if session is None or session.link is None:
        return {}
    client = session.link.client
    return {
        "network.protocol.version": PROTOCOLS.get(client.version, ""), "rumq.listener": client.policy.name,
    }  # fmt: skip
