"""Consumer groups: who reads which partitions, and the offsets that were committed.

docs/decisions/0068-kafka-groups-belong-to-users.md"""
