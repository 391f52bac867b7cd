"""Consumers of channels that outlast the requests of which they are made."""
