"""Settings: their table, and those of one start: read from config.toml, the environment, flags; checked, and shown."""
