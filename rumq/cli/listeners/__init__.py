"""The listeners of a running broker, which a reload may change."""
