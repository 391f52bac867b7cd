"""The server of the log over Arrow Flight."""
