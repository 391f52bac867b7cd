"""Rows published to a broker over MQTT, at least once or exactly once. Knows no Spark."""
