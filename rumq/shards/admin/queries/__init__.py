"""Answers to questions of the operator about one shard; they change nothing."""
