"""The socket that a shard, or a node, answers questions of the operator on."""
