"""TLS: contexts, options and what a failed handshake means."""
