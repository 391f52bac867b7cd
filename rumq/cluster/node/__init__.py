"""A shard's process on a node while it does not lead: files, sockets and the clock around the sans-IO rules."""
