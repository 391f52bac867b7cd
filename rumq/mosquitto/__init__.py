"""mosquitto's configuration files, converted to rumq's settings.

docs/guides/security.md, "Migrating from mosquitto"."""
