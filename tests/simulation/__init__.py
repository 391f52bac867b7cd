"""Several shards in one process, without sockets and threads: what happens when is drawn from a seed."""
