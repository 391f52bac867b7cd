"""The log itself: partitions that records are appended to and read from, and their store, from its recovery on."""
