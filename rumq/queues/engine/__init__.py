"""Queues at work, over MQTT to the broker's own socket: definitions, anchors, engines of channels, pushes, depths."""
