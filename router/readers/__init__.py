"""Offsets into the log: readers, the subscribers and subscriptions that have them, and shared ones."""
