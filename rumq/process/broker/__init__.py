"""A broker on one machine: its supervisor, the check before its start, another number of shards."""
