"""A node of a cluster: its supervisor, its agent, its edge, its shards."""
