"""A follower's copy of a partition: the leader's segment files, byte for byte. docs/reference/log-format.md.

The leader sends segments and chunks; a copy checks, writes and syncs them, and keeps its own manifest, indexes and
names as a writer does, so that a log opened on it starts as quickly. Opens no connection, reads no clock."""
