"""Engines of channels, which serve consumers; and what becomes of messages that fail or are not due yet."""
