"""The gateway measured: what it costs the shards, REST, the page with a crowd, clients that misbehave, an install."""
