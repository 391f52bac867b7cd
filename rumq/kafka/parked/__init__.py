"""Connections that repeat a Fetch which finds nothing."""
