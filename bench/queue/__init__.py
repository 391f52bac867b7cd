"""Queues side by side: push and acknowledged consume, ten producers and ten consumers."""
