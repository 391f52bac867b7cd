"""Layers between a socket and MQTT: a stream connection, its handshake, a relay of bytes."""
