"""Writing: a DataFrame published to the broker over MQTT, at least once or exactly once."""
