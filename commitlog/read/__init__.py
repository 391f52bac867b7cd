"""Readers of the log that do not write it: old records, whole partitions, verification, backup."""
