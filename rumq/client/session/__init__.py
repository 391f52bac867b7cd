"""One client's side of MQTT: packets over a stream, QoS handshakes, reconnection. MQTT 5.0, 4."""
