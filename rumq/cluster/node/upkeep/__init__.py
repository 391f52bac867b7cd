"""Upkeep of the copies that a node does not lead: read again, and packed."""
