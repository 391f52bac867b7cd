"""The other shards of the broker: what each asks of this one, and what this one asks of them."""
