"""Clients of a leader that hands its shard over: their connections go on at the next leader."""
