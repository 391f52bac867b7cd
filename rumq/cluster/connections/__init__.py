"""Connections to other nodes and to the agent of this one, served by the pump."""
