"""What services do with MQTT: requests and responses, replays, channels of queues."""
