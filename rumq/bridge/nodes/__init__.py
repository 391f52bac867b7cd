"""Bridges of a cluster: one node at a time runs them."""
