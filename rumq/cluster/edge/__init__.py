"""The edge of a node: accepts clients, and passes each to the leader of its home shard."""
