"""From the first byte to CONNACK: CONNECT, authentication, the listener's policy. MQTT 5.0, 3.1, 3.2 and 4.12."""
