"""Queues as the log's files have them: messages, ids, depths."""
