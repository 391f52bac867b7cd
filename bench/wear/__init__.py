"""Bytes that reach the disk for each lone message, and what it takes of the disk afterwards."""
