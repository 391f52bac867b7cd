"""Subcommands on a data directory, with the broker on or off: log, backup, restore, doctor."""
