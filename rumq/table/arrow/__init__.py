"""Rows of the log as Arrow columns."""
