"""Messages to the broker over MQTT, one connection for each user, and the numbers that they get in their topics."""
