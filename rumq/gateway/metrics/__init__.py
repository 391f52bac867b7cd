"""Metrics for Prometheus: the table, and the exposition of it."""
