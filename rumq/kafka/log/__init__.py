"""The log as its files have it, and its newest records in memory, told when there are more."""
