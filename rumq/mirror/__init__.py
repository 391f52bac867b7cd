"""Mirrors: the records of one broker or cluster, published to another one. docs/guides/mirrors.md."""
