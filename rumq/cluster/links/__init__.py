"""Connections between nodes: their greeting, frames and addresses."""
