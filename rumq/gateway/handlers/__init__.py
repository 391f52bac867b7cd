"""One handler for each endpoint."""
