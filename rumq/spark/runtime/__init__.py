"""Spark sessions and their checks: packages, Java, checkpoints, the lag of a query."""
