"""Between shards: the links, their messages, forwarded records and publishes, shared groups."""
