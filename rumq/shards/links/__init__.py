"""Links of a shard to the others, and connections of a leader to and from other nodes of a cluster."""
