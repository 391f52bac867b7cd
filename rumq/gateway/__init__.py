"""The gateway: REST under /api/v1, /metrics and health on one port, in a process beside the shards.

It asks the shards over the admin sockets, publishes over MQTT, and reads records from the files of the log."""
