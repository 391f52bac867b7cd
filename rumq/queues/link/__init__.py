"""The ways of queues to the broker, over MQTT to its own socket: definitions, anchors, pushes, members of groups."""
