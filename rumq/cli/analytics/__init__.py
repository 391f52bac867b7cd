"""Subcommands for the log as a table: `rumqd lake`, `rumqd spark`, `rumqd flight`."""
