"""Certificates and secrets that all nodes of a cluster need."""
