"""The process of the gateway."""
