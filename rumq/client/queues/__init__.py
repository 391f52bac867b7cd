"""Queues of a rumq broker: made and pushed to through its gateway, consumed there or over MQTT.

What a queue is: docs/reference/queues.md. Why the gateway: decision 64."""
