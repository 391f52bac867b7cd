"""MQTT over WebSocket. RFC 6455; MQTT 5.0, 6."""
