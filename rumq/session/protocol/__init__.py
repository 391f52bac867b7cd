"""Packets after CONNACK: PUBLISH checks, SUBSCRIBE, acknowledgements, reason strings. MQTT 5.0, chapter 3."""
