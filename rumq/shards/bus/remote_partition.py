"""A partition that another shard owns: what is known of it here. It can be read by way of its owner only.

Knows no socket; `rumq.shards.bus.peer` keeps it up to date."""

from __future__ import annotations

from collections.abc import Iterator

from commitlog import Chunk, Gap, NotInMemory, StreamSpec
from rumq.shards.bus.publish_sender import PublishSender


class RemotePartition:
    """In the place of a `commitlog.Partition`, for what is asked of one that is not ours."""

    is_mirrored = True
    offline = None

    def __init__(self, spec: StreamSpec, index: int, number: int, generation: int, owner: int) -> None:
        self.spec, self.index, self.number, self.generation = spec, index, number, generation
        self.stream = spec.name
        self.owner = owner
        self.is_volatile = spec.durability == "memory"
        self.first_lsn = 0
        self.next_lsn = 0  # when its owner was met; then the router's feed knows
        self.is_met = False
        self.topic_names: list[bytes] = []  # by the owner's ids; empty while not known
        self.topic_ids: dict[bytes, int] = {}
        self.publisher_names: list[bytes] = [
            b""
        ]  # by the owner's numbers; only if somebody here asks for them
        self.outgoing = PublishSender(index)

    @property
    def ack_source(self) -> PublishSender:
        return self.outgoing

    @property
    def committed_lsn(self) -> int:
        """Below it nothing of ours is on its way."""
        return self.outgoing.committed_there

    def name_topics(self, names: list[tuple[int, bytes]]) -> None:
        """Take in names of topic ids."""
        for topic_id, name in names:
            missing = topic_id + 1 - len(self.topic_names)
            if missing > 0:
                self.topic_names.extend([b""] * missing)
            before = self.topic_names[topic_id]
            if before != name and self.topic_ids.get(before) == topic_id:
                del self.topic_ids[before]
            self.topic_names[topic_id] = name
            self.topic_ids[name] = topic_id

    def name_publishers(self, first: int, names: list[bytes]) -> None:
        """Take in names of publisher numbers, from `first` on."""
        missing = first - len(self.publisher_names)
        if missing > 0:
            self.publisher_names.extend([b""] * missing)
        self.publisher_names[first : first + len(names)] = names

    def add_topic(self, name: bytes) -> int:
        return self.outgoing.add_topic(name)

    def add_publisher(self, client_id: str) -> int:
        return self.outgoing.add_publisher(client_id)

    def known_publisher(self, client_id: str) -> int:
        return self.outgoing.known_publisher(client_id)

    def uncommitted_tags(self) -> Iterator[tuple[int, int]]:
        return self.outgoing.uncommitted_tags()

    def read(self, lsn: int, bytes_max: int = 1) -> list[Chunk | Gap]:
        raise NotInMemory(lsn)
