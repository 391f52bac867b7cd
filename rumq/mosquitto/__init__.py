"""mosquitto's configuration files, converted to rumq's settings. docs/security.md, "Migrating from mosquitto"."""
