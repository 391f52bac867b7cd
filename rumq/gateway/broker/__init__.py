"""The gateway as a client of the broker: shards' admin sockets, publishers, events, spans."""
