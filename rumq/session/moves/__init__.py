"""Connections that go to the next leader of their shard without ending."""
