"""Queues and channels over REST, on the interface of `rumq.queues`."""
