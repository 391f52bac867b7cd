"""A leader's part of replication: what a shard writes is copied to its followers, and committed by majority."""
