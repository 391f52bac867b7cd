"""The turn of a shard: the loop, its steps in order, the router's effects, authentication work."""
