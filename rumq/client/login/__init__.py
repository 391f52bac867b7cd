"""Methods of enhanced authentication, the client's side. No I/O. MQTT 5.0, 4.12."""
