"""Settings of one start: read from config.toml, the environment and flags, checked against `rumq.config`, shown."""
