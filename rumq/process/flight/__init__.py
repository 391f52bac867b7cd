"""The process of the Flight server."""
