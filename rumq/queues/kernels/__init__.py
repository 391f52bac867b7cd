"""Work on each message of a queue: C speed where it is compiled."""
