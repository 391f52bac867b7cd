"""The process of a shard: its store, listeners, reload, shutdown, and its part in a cluster."""
